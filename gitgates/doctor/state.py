"""What runs that were killed have left, worktrees that are gone, and what surrounds us."""

from __future__ import annotations

import os
import re
import shlex

from gitgates import environ
from gitgates.doctor.finding import Finding, in_folder
from gitgates.git.index import NAME as INDEX_NAME
from gitgates.store.rescue import Rescue
from gitgates.worktree.locks import Lock, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.place import Place
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git

# Before it, `git config --show-scope` and much else that we ask for are not there.
OLDEST_GIT = (2, 31)


def check_git(git: Git) -> list[Finding]:
    """Return whether git is new enough."""
    said = os.fsdecode(git.out("version")).strip()
    match = re.search(r"(\d+)\.(\d+)", said)
    oldest = ".".join(map(str, OLDEST_GIT))
    if match and (int(match[1]), int(match[2])) >= OLDEST_GIT:
        return [Finding(severity="ok", check="git", where="git", what=said)]
    what = f"{said or 'its version cannot be told'}; gitgates needs {oldest} or later"
    return [Finding("problem", "git", "git", what, f"install git {oldest} or later")]


def check_environment(env: Mapping[str, str]) -> list[Finding]:
    """Return what the environment of this shell takes away."""
    if environ.is_off(env):
        what = "GITGATES=0 is set here: no hook runs any gate"
        return [Finding("problem", "environment", "GITGATES", what, "unset GITGATES")]
    return [
        Finding("note", "environment", name, f"set here, and skips gate `{gate}`", f"unset {name}")
        for gate, name in environ.skipped_gates(env).items()
    ]


def check_left_over(place: Place, here_abs: str) -> list[Finding]:
    """Return what a run that is over has left in a worktree."""
    repo = place.repo
    rescue = Rescue(f"{repo.state_abs}/rescue")
    indexes = [name for name in sorted(os.listdir(repo.git_dir_abs)) if INDEX_NAME in name]
    if not (rescue.is_in_use() or indexes) or _is_running(repo):
        return []
    noted = Finding("note", "left over", repo.root_abs, "")
    found = []
    if rescue.is_in_use():
        what = "a run that was killed has hidden unstaged work, which is not back yet"
        mend = in_folder(repo.root_abs, "gitgates recover", here_abs)
        found.append(noted._replace(severity="problem", what=what, mend=mend))
    for name in indexes:
        index_abs = os.path.join(repo.git_dir_abs, name)
        what = f"a run that was killed has left {index_abs}"
        found.append(noted._replace(what=what, mend=f"rm {shlex.quote(index_abs)}"))
    return found


def check_gone(gone: list[str]) -> list[Finding]:
    """Return worktrees that git still lists and that are not there."""
    what = "a worktree that git lists, and that is not there any more"
    return [Finding("note", "worktree", where, what, "git worktree prune") for where in gone]


def _is_running(repo: Repo) -> bool:
    """Tell whether a run of ours holds the worktree now: then nothing is left over."""
    lock = Lock(repo.state_abs)
    try:
        return not lock.acquire(Wait(0.0, lambda _text: None), alone=True)
    except OSError:
        return False
    finally:
        lock.release()
