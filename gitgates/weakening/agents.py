"""Hooks of an agent that have become weaker, between two states of its settings. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter

from gitgates.weakening.finding import AGENT_HOOKS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.weakening.finding import Pair

_SETTINGS = re.compile(r"(?:^|/)\.claude/settings[\w.-]*\.json$|(?:^|/)hooks/hooks\.json$")
_REVIEWER = re.compile(r"(?:^|/)\.claude/agents/.+\.md$")
_OFF = "disableAllHooks"


def find_in_agent_settings(pairs: tuple[Pair, ...], reviewer: str) -> tuple[Finding, ...]:
    """Return which hooks are gone or off, and whether the reviewer's own orders are others."""
    found: list[Finding] = []
    for pair in pairs:
        if _SETTINGS.search(pair.path):
            found += (Finding(pair.path, AGENT_HOOKS, text) for text in _compare(pair))
        elif _REVIEWER.search(pair.old_path) and pair.before is not None:
            name = pair.old_path.rpartition("/")[2].removesuffix(".md")
            if name == reviewer.rpartition(":")[2]:
                what = "deleted" if pair.after is None else "changed"
                found.append(Finding(pair.path, AGENT_HOOKS, f"the reviewer's orders: {what}"))
    return tuple(found)


def read_off(content: bytes) -> bool:
    """Tell whether settings switch all hooks off."""
    return bool(_read(content).get(_OFF))


def _compare(pair: Pair) -> list[str]:
    old, new = _read(pair.before), _read(pair.after)
    texts = [f"{_OFF}: true"] if new.get(_OFF) and not old.get(_OFF) else []
    was, now = _hooks(old), _hooks(new)
    for (event, command), matchers in was.items():
        left = now.get((event, command))
        if left is None:
            # Another way to the same program is no other hook.
            alike = any(e == event and _is_ours(command) and _is_ours(c) for e, c in now)
            texts += [] if alike else [f"{event}: `{command}` is gone"]
        elif gone := list((matchers - left).elements()):
            names = ", ".join(f"`{one}`" for one in gone)
            texts.append(f"{event}: `{command}` does not hear of {names} any more")
    return texts


def _is_ours(command: str) -> bool:
    return "gitgates" in command and "agent-hook" in command


def _read(content: bytes | None) -> dict[str, Any]:
    try:
        table = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}  # the client reads nothing of it either
    return table if isinstance(table, dict) else {}


def _hooks(settings: dict[str, Any]) -> dict[tuple[str, str], Counter[str]]:
    """Return event and command → the matchers that it stands under."""
    found: dict[tuple[str, str], Counter[str]] = {}
    events = settings.get("hooks")
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for hook in hooks if isinstance(hooks, list) else ():
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str):
                    matchers = found.setdefault((event, command), Counter())
                    matchers[str(group.get("matcher", "")) or "*"] += 1
    return found
