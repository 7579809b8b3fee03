"""Whether a shim can still start us: its interpreter runs, and finds our package."""

from __future__ import annotations

import os
import shlex
import sys

import gitgates
from gitgates import __version__
from gitgates.doctor.finding import Finding
from gitgates.proc.call import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.hookfile import HookFile
    from gitgates.git.repo import Repo

_ASK = "import sys; sys.path.insert(0, sys.argv[1]); import gitgates; print(gitgates.__version__)"
_MEND = "gitgates install-hooks"


def check_shim(file: HookFile, where: str, env: Mapping[str, str], repo: Repo) -> Finding:
    """Return what there is to say of one shim of ours. A shim that falls back is not alive."""
    fine = Finding(severity="ok", check="shim", where=where, what="installed, and alive")
    wrong = fine._replace(severity="problem", mend=_MEND)
    if not file.executable:
        return wrong._replace(
            what="is not executable, so that git does not run it",
            mend=f"chmod +x {shlex.quote(file.path_abs)}",
        )
    if not os.access(file.python, os.X_OK):
        return wrong._replace(what=f"its interpreter is gone: {file.python or 'none is named'}")
    if not os.path.isfile(os.path.join(file.home, "gitgates", "__init__.py")):
        return wrong._replace(what=f"gitgates is gone from {file.home or 'its home'}")
    if not may_start(file, repo):
        what = f"names {file.python}, and a file of the repository is not believed: not looked into"
        return wrong._replace(severity="note", what=what)
    version, trouble = _ask_version(file, env)
    if trouble:
        return wrong._replace(what=f"its interpreter {file.python} does not run it: {trouble}")
    noted = wrong._replace(severity="note")
    if version != __version__:
        return noted._replace(what=f"runs gitgates {version} of {file.home}; this is {__version__}")
    if not file.current:
        return noted._replace(what="is not as this version of gitgates writes it")
    return fine


def may_start(file: HookFile, repo: Repo) -> bool:
    """Tell whether a shim may be started: one that may have been cloned only as we write it."""
    folder_abs = os.path.realpath(os.path.dirname(file.path_abs)) + os.sep
    inside = [
        folder_abs.startswith(os.path.realpath(place_abs) + os.sep)
        for place_abs in (repo.root_abs, repo.common_dir_abs)
    ]
    ours = os.path.dirname(os.path.dirname(os.path.abspath(gitgates.__file__)))
    is_this_one = file.current and (file.python, file.home) == (sys.executable, ours)
    return is_this_one or inside != [True, False]


def _ask_version(file: HookFile, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the version that a shim would run, or why it would not."""
    try:
        done = call((file.python, "-I", "-S", "-c", _ASK, file.home), env)
    except OSError as error:
        return "", error.strerror or str(error)
    said = os.fsdecode(done.stderr).strip().rpartition("\n")[2]
    if done.exit_status:
        return "", said or f"exit status {done.exit_status}"
    return os.fsdecode(done.stdout).strip(), ""
