"""Compare two configurations of our gates, and of an agent's hooks: what became weaker. Pure.

Whatever makes a gate check less, later, or with less effect. A gate that is new, a hook that runs
more, a review that is asked for sooner are no findings.
"""

from __future__ import annotations

import json
from collections import Counter

from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, REVIEW_KEYS, TOP_KEYS, Key
from gitgates.hosts.claude.settings import AGENT_PATH, NO_HOOKS, SETTINGS_PATH, handlers
from gitgates.types import ACTIONS, Config, Gate, Hook, Review
from gitgates.weakening.finding import AGENT_HOOKS, GATE, Weakening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from gitgates.weakening.finding import Pair

    Side: TypeAlias = Config | Gate | Hook | Review

# How much of a limit must be left, so that less is no finding: a test suite may well be faster.
_SHARPLY = 0.5


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Weakening, ...]:
    """Return what has become weaker. `path` is the file that the settings stand in."""
    if before is None:
        return ()
    if after is None:
        return (Weakening(path, GATE, "all settings of gitgates are gone"),)
    texts = [
        *_compare(TOP_KEYS, before, after, ""),
        *_compare_gates(before, after),
        *_compare_hooks(before, after),
        *_compare(REVIEW_KEYS, before.review, after.review, "review."),
    ]
    return tuple(Weakening(path, GATE, text) for text in texts)


def _compare_gates(before: Config, after: Config) -> Iterable[str]:
    now = {gate.name: gate for gate in after.gates}
    for gate in before.gates:
        if gate.name in now:
            yield from _compare(GATE_KEYS, gate, now[gate.name], f"gates.{gate.name}.")
        else:
            yield f"gates.{gate.name}: removed"


def _compare_hooks(before: Config, after: Config) -> Iterable[str]:
    now = {hook.name: hook for hook in after.hooks}
    for hook in before.hooks:
        if not hook.gates:
            continue  # nothing ran there
        if hook.name not in now:
            yield f"hooks.{hook.name}: removed, with {', '.join(hook.gates)}"
        else:
            yield from _compare(HOOK_KEYS, hook, now[hook.name], f"hooks.{hook.name}.")


def _compare(keys: tuple[Key, ...], old_side: Side, new_side: Side, place: str) -> Iterable[str]:
    for key in keys:
        old, new = getattr(old_side, key.field), getattr(new_side, key.field)
        if old == new or not key.weaker:
            continue
        if key.weaker in ("more", "fewer"):
            text = _entries(str(key.weaker), old, new)
        else:
            text = f"{_shown(old)} → {_shown(new)}" if _is_weaker(key.weaker, old, new) else ""
        if text:
            yield f"{place}{key.name}: {text}"


def _is_weaker(way: str | tuple[str, ...], old: Any, new: Any) -> bool:  # noqa: ANN401 - a value of any setting
    """Return whether a change of a value weakens, by the column `weaker` of the table of keys."""
    if isinstance(way, str):
        return _WEAKER[way](old, new)
    return new in way and (old not in way or way.index(new) < way.index(old))


def _strength(action: str) -> int:
    return ACTIONS.index(action) if action in ACTIONS else 1


# way → whether the second value is weaker than the first
_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "any": lambda _old, _new: True,
    "off": lambda _old, new: not new,
    "on": lambda _old, new: bool(new),
    # What a chain of gates comes to, only reading it tells.
    "action": lambda old, new: new not in ACTIONS or _strength(new) < _strength(old),
    "less": lambda old, new: new < old,
    "greater": lambda old, new: new > old,
    "sharply": lambda old, new: 0 < new < _SHARPLY * old or (not old and new > 0),
    "each": lambda old, new: any(now < was for was, now in zip(old, new, strict=True)),
}


def _entries(way: str, old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> str:
    """Return which entries too many, or too few, a list has now. None: all."""
    if way == "fewer" and old is None:
        return f"all → {_shown(new)}"
    if new is None:
        return ""
    gone = [f"- {one}" for one in old or () if one not in new]
    added = [f"+ {one}" for one in new if one not in (old or ())]
    wrong, back = (added, gone) if way == "more" else (gone, added)
    # A pattern with `!` takes away what others have put in.
    plain = [one for one in wrong if not one.startswith("!", 2)]
    return ", ".join([*plain, *(one for one in back if one.startswith("!", 2))])


def _shown(value: object) -> str:
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple):
        parts = (_shown(one) for one in value)
        return f"[{', '.join(parts)}]"
    return f"`{value}`" if value != "" else "nothing"


def find_in_agent_settings(pairs: tuple[Pair, ...], reviewer: str) -> tuple[Weakening, ...]:
    """Return which hooks are gone or off, and whether the reviewer's own orders are others."""
    found: list[Weakening] = []
    for pair in pairs:
        if SETTINGS_PATH.search(pair.path):
            found += (
                Weakening(pair.path, AGENT_HOOKS, text) for text in _compare_hooks_of_agent(pair)
            )
        elif AGENT_PATH.search(pair.old_path) and pair.before is not None:
            name = pair.old_path.rpartition("/")[2].removesuffix(".md")
            if name == reviewer.rpartition(":")[2]:
                what = "deleted" if pair.after is None else "changed"
                found.append(Weakening(pair.path, AGENT_HOOKS, f"the reviewer's orders: {what}"))
    return tuple(found)


def read_off(content: bytes) -> bool:
    """Return whether settings switch all hooks off."""
    return bool(_read(content).get(NO_HOOKS))


def _compare_hooks_of_agent(pair: Pair) -> list[str]:
    old, new = _read(pair.before), _read(pair.after)
    texts = [f"{NO_HOOKS}: true"] if new.get(NO_HOOKS) and not old.get(NO_HOOKS) else []
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
    hooks = settings.get("hooks")
    groups = hooks.items() if isinstance(hooks, dict) else ()
    for event, group, hook in handlers({e: each for e, each in groups if isinstance(each, list)}):
        if isinstance(command := hook.get("command"), str):
            matchers = found.setdefault((event, command), Counter())
            matchers[str(group.get("matcher", "")) or "*"] += 1
    return found
