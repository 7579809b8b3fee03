"""Find what checks nothing: a configuration without gates, or gates that match no file."""

from __future__ import annotations

from gitgates.config.values import show
from gitgates.core.clean import counted, first_few
from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.core.policy import functions_of
from gitgates.core.types import Config
from gitgates.engine.plan.match import select
from gitgates.git.repo import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NO_GATES = "it declares no gates, so nothing is checked"
FEW_FILES = 2  # on one line
_MESSAGE_HOOKS = {point.name for point in GIT_HOOKS if point.scope == "message"}


def files_text(config: Config) -> str:
    """Return the settings files on one line: the first few, and how many more there are."""
    files = config.sources
    return " and ".join(files) if len(files) <= FEW_FILES else first_few(files, FEW_FILES)


def has_gates(config: Config) -> bool:
    """Return whether anything can run: a gate, or a policy's command."""
    gates = config.gates or any(hook.gates for hook in config.hooks)
    return bool(gates) or any(runs(config) for runs in functions_of(config, "runs_commands"))


def find_unmatched(config: Config, repo: Repo) -> Iterator[tuple[str, str]]:
    """Yield the name of each gate whose `files` match no tracked file, and a remark on it.

    Hooks for commit messages have only the message's file to match. An empty array of patterns is
    intended. Raises: GitError if git fails.
    """
    selecting = [(gate, gate.selection.files) for gate in config.gates if gate.selection.files]
    tracked = tuple(repo.git.names("ls-files", "-z")) if selecting else ()
    about_message = [hook for hook in config.hooks if hook.name in _MESSAGE_HOOKS]
    for gate, files in selecting:
        patterns = f"its `files` = {show(list(files))}"
        if tracked and not select(tracked, files, gate.selection.exclude):
            yield gate.name, f"{patterns} match none of {counted(len(tracked), 'tracked file')}"
        if select((".git/COMMIT_EDITMSG",), files, gate.selection.exclude):
            continue
        for name in (hook.name for hook in about_message if gate.name in hook.gates):
            yield gate.name, f"{patterns} never match in {name}, which has only the message"
