"""Whether git runs the gates of each configured hook, in every worktree."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping

import gitgates
from gitgates import __version__
from gitgates.core.errors import ConfigError
from gitgates.edit.user_file import content
from gitgates.git.repo import Repo
from gitgates.proc.call import call
from gitgates.setup.doctor.findings import Subject, Worktree
from gitgates.setup.install import selection
from gitgates.setup.install.githooks import HookFile, is_served, read_hook
from gitgates.setup.install.hookspath import setting, unset_command, why_unused
from gitgates.setup.install.managers import VIA, called_hooks, install_command
from gitgates.verbs.finding import Finding

_INSTALL = "gitgates install-hooks"
_NOT_EXECUTABLE = "is not executable, so git does not run it"
_ASK = "import sys; sys.path.insert(0, sys.argv[1]); import gitgates; print(gitgates.__version__)"


def check_hooks_path(subject: Subject) -> Iterator[Finding]:
    """Find a core.hooksPath that names no folder, or one that other repositories share."""
    reported: set[str] = set()
    for worktree in subject.worktrees:
        folder, root_abs = worktree.folder, worktree.repo.root_abs
        unset = worktree.command(unset_command(folder))
        if folder.scope and (why := why_unused(folder)):
            is_husky = ".husky" in folder.value.split("/")
            fix = f"{worktree.command('npm install')}   # or: {unset}" if is_husky else unset
            yield Finding("problem", "hooksPath", root_abs, why, fix)
        elif folder.is_shared and folder.value not in reported:
            what = f"{setting(folder)}: other repositories also use that folder for hooks"
            yield Finding("note", "hooksPath", root_abs, what, unset)
        reported.add(folder.value)


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Find configured hooks that git, or another hook manager, does not run gates for.

    Each hooks folder is looked at once: worktrees mostly share one.
    """
    folders: dict[str, Worktree] = {}
    for worktree in subject.worktrees:
        folders.setdefault(worktree.folder.path_abs, worktree)
    for folder_abs, worktree in folders.items():
        for hook in _wanted_hooks(subject):
            yield _check_hook(read_hook(os.path.join(folder_abs, hook)), worktree)


def _wanted_hooks(subject: Subject) -> tuple[str, ...]:
    """Return the configured git hooks; if that cannot be read, those that are installed."""
    if subject.config is None:
        folder_abs = subject.current.folder.path_abs
        files = (read_hook(os.path.join(folder_abs, hook)) for hook in selection.CLIENT_HOOKS)
        return tuple(file.hook for file in files if file.kind == "shim")
    try:
        return selection.select(subject.config)[0]
    except ConfigError:
        return ()  # no git hook is configured: then there is nothing to install


def _check_hook(file: HookFile, worktree: Worktree) -> Finding:
    location = worktree.display_path(file.path_abs)
    wrong = Finding("problem", "hook", location, "", worktree.command(_install(file, worktree)))
    if file.kind == "none":
        return wrong._replace(what=f"{file.hook} is not installed: git runs none of its gates")
    if file.kind == "shim":
        return check_shim(file, location, worktree)
    if not file.executable:
        return wrong._replace(what=_NOT_EXECUTABLE, mend=f"chmod +x {shlex.quote(file.path_abs)}")
    name = file.manager.name if file.manager else ""
    served = f"{name} runs the gates" if is_served(file, name, worktree.calls) else ""
    if served or file.hook in called_hooks(content(file.path_abs)):
        return wrong._replace(severity="ok", what=served or "calls gitgates", mend="")
    suffix = file.manager.previous_suffix if file.manager and file.manager.runs_previous else ""
    previous = read_hook(file.path_abs + suffix)
    if previous.kind == "shim":
        return check_shim(previous, f"{location}{suffix}", worktree)
    owner = f"belongs to {name}" if name else "is not a gitgates hook"
    return wrong._replace(what=f"{owner}: git runs none of the gates")


def _install(file: HookFile, worktree: Worktree) -> str:
    """Return the command that makes git run a hook's gates, through a manager if it has one.

    The one whose hook it is, or whose file runs gates already.
    """
    names = [name for name, _hook in worktree.calls]
    for name, hook in worktree.calls:
        if hook == file.hook:
            return install_command(name, (hook,), worktree.folder, worktree.repo.root_abs)
    name = file.manager.name if file.manager else next(iter(names), "")
    return f"{_INSTALL} --via {name}" if name in VIA else _INSTALL


# The shim


def check_shim(file: HookFile, location: str, worktree: Worktree) -> Finding:
    """Return the finding about one gitgates shim."""
    wrong = Finding("problem", "shim", location, "", worktree.command(_INSTALL))
    note = wrong._replace(severity="note")
    if not file.executable:
        return wrong._replace(what=_NOT_EXECUTABLE, mend=f"chmod +x {shlex.quote(file.path_abs)}")
    if not os.access(file.python, os.X_OK):
        return wrong._replace(what=f"its interpreter is missing: {file.python or 'none is named'}")
    if not os.path.isfile(os.path.join(file.home, "gitgates", "__init__.py")):
        return wrong._replace(what=f"gitgates is missing from {file.home or 'its home'}")
    if not may_start(file, worktree.repo):
        what = f"names {file.python}, which is a file of the repository and not trusted"
        return note._replace(what=f"{what}: not checked")
    is_this = _starts_this_gitgates(file)
    env = worktree.repo.env
    version, trouble = (__version__, "") if is_this else _ask_version(file, env)
    if trouble:
        return wrong._replace(what=f"its interpreter {file.python} does not run it: {trouble}")
    if version != __version__:
        return note._replace(what=f"runs gitgates {version} of {file.home}; this is {__version__}")
    if not file.current:
        return note._replace(what="was written by a different version of gitgates")
    return Finding("ok", "shim", location, "installed and working")


def may_start(file: HookFile, repo: Repo) -> bool:
    """Return whether a shim may be started: one that may have been cloned only as we write it."""
    folder_abs = os.path.realpath(os.path.dirname(file.path_abs)) + os.sep
    places = (
        os.path.realpath(path_abs) + os.sep for path_abs in (repo.root_abs, repo.common_dir_abs)
    )
    is_in_tree, is_in_git = map(folder_abs.startswith, places)
    return is_in_git or not is_in_tree or (file.current and _starts_this_gitgates(file))


def _starts_this_gitgates(file: HookFile) -> bool:
    """Return whether a shim starts the running gitgates, so it need not be tried."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(gitgates.__file__)))
    return (file.python, file.home) == (sys.executable, home)


def _ask_version(file: HookFile, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the version that a shim would run, or why it would not."""
    try:
        process = call((file.python, "-I", "-S", "-c", _ASK, file.home), env)
    except OSError as error:
        return "", error.strerror or str(error)
    message = os.fsdecode(process.stderr).strip().rpartition("\n")[2]
    if process.exit_status:
        return "", message or f"exit status {process.exit_status}"
    return os.fsdecode(process.stdout).strip(), ""
