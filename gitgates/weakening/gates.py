"""Compare two configurations of our gates, and of an agent's hooks: what became weaker. Pure.

Whatever makes a gate check less, later, or with less effect. A gate that is new, a hook that runs
more, a review that is asked for sooner are no findings.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, REVIEW_KEYS, TOP_KEYS, Key
from gitgates.errors import ConfigError
from gitgates.hosts import AGENTS, agent_settings
from gitgates.hosts.settings import HookSettings
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


def _compare_hooks_of_agent(pair: Pair, agent: str) -> list[str]:
    old, new = read_settings(agent, pair.before), read_settings(agent, pair.after)
    texts = [f"{agent_settings(agent).OFF}: true"] if new.off and not old.off else []
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


def _hooks(settings: HookSettings) -> dict[tuple[str, str], Counter[str]]:
    """Return event and command → the matchers that it stands under."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for hook in settings.hooks:
        found.setdefault((hook.event, hook.command), Counter())[hook.matcher or "*"] += 1
    return found
