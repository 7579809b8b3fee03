"""Compare two configurations of our gates, and of an agent's hooks: what became weaker. Pure.

Whatever makes a gate check less, later, or with less effect. A gate that is new, a hook that runs
more, a review that is asked for sooner are no findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, TypeAlias

from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, REVIEW_KEYS, TOP_KEYS, Key
from gitgates.errors import ConfigError
from gitgates.hosts import AGENTS, agent_settings
from gitgates.hosts.settings import HookSettings
from gitgates.types import ACTIONS, Config, Gate, Hook, Review
from gitgates.weakening.finding import AGENT_HOOKS, GATE, Pair, Weakening

Side: TypeAlias = Config | Gate | Hook | Review

# How much of a limit must be left, so that less is no finding: a test suite may well be faster.
_SHARPLY = 0.5


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Weakening, ...]:
    """Return what has become weaker. `path` is the file that the settings stand in."""
    if before is None:
        return ()
    if after is None:
        return (Weakening(path, GATE, "all settings of gitgates are gone"),)
    gates, hooks = ({one.name: one for one in ones} for ones in (after.gates, after.hooks))
    texts = [*_compare(TOP_KEYS, before, after, "")]
    for gate in before.gates:
        if gate.name in gates:
            texts += _compare(GATE_KEYS, gate, gates[gate.name], f"gates.{gate.name}.")
        else:
            texts.append(f"gates.{gate.name}: removed")
    for hook in before.hooks:
        if hook.gates and hook.name not in hooks:
            texts.append(f"hooks.{hook.name}: removed, with {', '.join(hook.gates)}")
        elif hook.gates:
            texts += _compare(HOOK_KEYS, hook, hooks[hook.name], f"hooks.{hook.name}.")
    texts += _compare(REVIEW_KEYS, before.review, after.review, "review.")
    return tuple(Weakening(path, GATE, text) for text in texts)


def _compare(keys: tuple[Key, ...], old_side: Side, new_side: Side, place: str) -> Iterable[str]:
    """Yield values that have become weaker, by the column `weaker` of the table of keys."""
    for key in keys:
        old, new, way = getattr(old_side, key.field), getattr(new_side, key.field), key.weaker
        if old == new or not way:
            continue
        if way in ("more", "fewer"):
            text = _entries(str(way), old, new)
        elif isinstance(way, str):
            text = f"{_shown(old)} → {_shown(new)}" if _WEAKER[way](old, new) else ""
        else:
            is_weaker = new in way and (old not in way or way.index(new) < way.index(old))
            text = f"{_shown(old)} → {_shown(new)}" if is_weaker else ""
        if text:
            yield f"{place}{key.name}: {text}"


def _is_weaker_action(old: str, new: str) -> bool:
    # What a chain of gates comes to, only reading it tells.
    was = ACTIONS.index(old) if old in ACTIONS else 1
    return new not in ACTIONS or ACTIONS.index(new) < was


# way → whether the second value is weaker than the first
_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "any": lambda _old, _new: True,
    "off": lambda _old, new: not new,
    "on": lambda _old, new: bool(new),
    "action": _is_weaker_action,
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
    for agent, pair in product(AGENTS, pairs):
        host = agent_settings(agent)
        if host.SETTINGS_PATH.search(pair.path):
            texts = _compare_hooks_of_agent(pair, agent)
            found += (Weakening(pair.path, AGENT_HOOKS, text) for text in texts)
        elif host.AGENT_PATH.search(pair.old_path) and pair.before is not None:
            name = pair.old_path.rpartition("/")[2].rpartition(".")[0]
            if name == reviewer.rpartition(":")[2]:
                what = "deleted" if pair.after is None else "changed"
                found.append(Weakening(pair.path, AGENT_HOOKS, f"the reviewer's orders: {what}"))
    return tuple(found)


def read_settings(agent: str, content: bytes | None) -> HookSettings:
    """Return what settings say; nothing if they cannot be read: the client does not, either."""
    try:
        return agent_settings(agent).read((content or b"").decode("utf-8", "replace"), "")
    except ConfigError:
        return HookSettings()


def _compare_hooks_of_agent(pair: Pair, agent: str) -> Iterable[str]:
    old, new = read_settings(agent, pair.before), read_settings(agent, pair.after)
    if new.off and not old.off:
        yield f"{agent_settings(agent).OFF}: true"
    # Another way to our own program is no other hook.
    was, now = (
        Counter((h.event, h.matcher or "*", "" if h.is_ours else h.command) for h in side.hooks)
        for side in (old, new)
    )
    for event, matcher, command in was - now:
        where = "" if matcher == "*" else f" for `{matcher}`"
        yield f"{event}: `{command or 'gitgates agent-hook ' + agent}` is gone{where}"
