"""The policy that names files of others, and secrets, in the commit of an agent.

A file is others' if the memory of files has the whole session, and no tool call of it has changed
the file. A hook of git has no session: whose commit it is, the environment says.
"""

from __future__ import annotations

from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, WARN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.drivers.git import HookCall

_MOST_NAMED = 10
_ADDED = ("diff", "--cached", "--diff-filter=A", "--name-only", "-z", "--no-renames")
_TOOLS: tuple[EventKind, ...] = ("before-tool", "after-tool", "tool-failed")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the needed events: commits, and those around tools, which tell who changed what."""
    if not follows_writers(config):
        return ()
    tools = [Need(kind=kind, tools=(), but_reads=True) for kind in _TOOLS]
    return (Need(kind="before-commit"), *tools)


def follows_writers(config: Config) -> bool:
    """Return whether it is asked what a session itself has changed."""
    return _answer(config) != "off"


def decide(call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - of an agent, or of git
    """Name what an agent's commit has in it that is not its own."""
    if call.kind != "before-commit" or not follows_writers(call.config):
        return so_far
    from gitgates.hosts import calling_session, is_called_by_agent

    if not is_called_by_agent(call.env):
        return so_far
    from gitgates.core.clean import first_few, plain_line  # only where an agent commits

    lines = []
    for what, paths in (
        ("files that its session has not changed", _of_others(call, calling_session(call.env))),
        ("new files that look like secrets", _secrets(call)),
    ):
        if paths:
            lines.append(f"{what}: {first_few([*map(plain_line, paths)], _MOST_NAMED)}")
    if not lines:
        return so_far
    text = f"this commit has {'; and '.join(lines)}. To leave one out: git restore --staged"
    if _answer(call.config) == "block":
        return so_far.joined(Verdict(BLOCK, to_agent=f"{text} FILE"))
    return so_far.joined(Verdict(WARN, to_person=f"{text} FILE"))


def _answer(config: Config) -> str:
    return str(config.tables.get("commits", {}).get("own_files", "off"))


def _of_others(call: HookCall, session: str) -> list[str]:
    """Return the staged files that the session has not changed; none if that is not known."""
    from gitgates.core.errors import GitgatesError
    from gitgates.drivers.caller import identify
    from gitgates.drivers.dry_call import dry_call
    from gitgates.drivers.writers import own_history
    from gitgates.git.paths import staged_paths

    try:
        caller = identify(call.repo, call.env, session=session) if session else None
        if caller is None:
            return []
        history = own_history(dry_call(call.repo, call.config, "turn-end", caller))
        if history is None:
            return []
        own = {path for each in history.stretches if each.is_own for path in each.changes}
    except GitgatesError as error:
        call.say(f"whose the staged files are is not known: {error}")
        return []
    staged, deleted = staged_paths(call.repo, merging=call.event.name == "pre-merge-commit")
    return sorted({*staged, *deleted} - own)


def _secrets(call: HookCall) -> list[str]:
    from gitgates.git.secret_files import secret_named

    added = call.repo.git.names(*_ADDED)
    return [f"{path} ({what})" for path in added if (what := secret_named(path))]
