"""The environment that a gate gets: the person's, without what git sets for its own hooks.

Passing git's variables on makes a gate that runs `git init && git commit` in a scratch folder
commit into the real repository; taking all of them away makes `git diff --cached` wrong under
`commit -a` and `commit -- path`. So a gate gets none of them, but a private copy of the index where
that is not the worktree's own.
"""

from __future__ import annotations

from gitgates.hosts import agent_host
from gitgates.record import Record
from gitgates.types import Event, Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Source: `git rev-parse --local-env-vars`, git 2.39 to 2.54, and what `git commit` exports.
GIT_LOCAL = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_REFLOG_ACTION",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
)


class GitView(Record):
    """What a gate's own git commands need to know to see what is being committed."""

    index_file: str = ""  # the private copy of the index; empty: the worktree's own is right
    git_dir_abs: str = ""  # only where the folder does not lead to the repository
    root_abs: str = ""


def gate_env(
    base: Mapping[str, str], event: Event, gate: Gate, view: GitView
) -> tuple[tuple[str, str], ...]:
    """Return the environment of one gate."""
    env = without_git(base)
    if event.payload:
        for name in agent_host(event.payload.host).SECRETS:
            if name not in gate.pass_env:
                env.pop(name, None)
    if view.git_dir_abs:
        env["GIT_DIR"] = view.git_dir_abs
        env["GIT_WORK_TREE"] = view.root_abs
    if view.index_file and gate.git_env != "clean":
        env["GIT_INDEX_FILE"] = view.index_file
    env["GITGATES_HOOK"] = event.name
    env.update(gate.env)
    return tuple(env.items())


def without_git(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what git sets for its own hooks."""
    return {name: value for name, value in env.items() if name not in GIT_LOCAL}


def enter(active: str, hook: str, git_dir_abs: str, pid: int) -> str:
    """Return GITGATES_ACTIVE with this hook of this repository, run by a process, added."""
    return f"{active}\n{pid} {hook} {git_dir_abs}".lstrip("\n")


def active_pids(active: str, git_dir_abs: str, hook: str = "") -> tuple[int, ...]:
    """Return the processes further up that run this hook of this worktree (empty: any hook).

    Whether they still live is not said: what a gate leaves running keeps the name for ever.
    """
    found = []
    for line in active.split("\n"):
        pid, _, rest = line.partition(" ")
        name, _, where = rest.partition(" ")
        if where == git_dir_abs and hook in ("", name) and pid.isdigit():
            found.append(int(pid))
    return tuple(found)
