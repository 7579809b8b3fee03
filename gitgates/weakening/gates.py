"""Our own gates that have become weaker, between two configurations. Pure.

Whatever makes a gate check less, later, or with less effect. A gate that is new, a hook that runs
more, a review that is asked for sooner are no findings.
"""

from __future__ import annotations

from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, REVIEW_KEYS, TOP_KEYS, Key
from gitgates.types import ACTIONS, Config, Gate, Hook, Review
from gitgates.weakening.finding import GATE, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# How much of a limit must be left, so that less is no finding: a test suite may well be faster.
_SHARPLY = 0.5


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Finding, ...]:
    """Return what has become weaker. `path` is the file that the settings stand in."""
    if before is None:
        return ()
    if after is None:
        return (Finding(path, GATE, "all settings of gitgates are gone"),)
    texts = [
        *_compare(TOP_KEYS, (before, after), ""),
        *_compare_gates(before, after),
        *_compare_hooks(before, after),
        *_compare(REVIEW_KEYS, (before.review, after.review), "review."),
    ]
    return tuple(Finding(path, GATE, text) for text in texts)


def _compare_gates(before: Config, after: Config) -> Iterable[str]:
    now = {gate.name: gate for gate in after.gates}
    for gate in before.gates:
        if gate.name in now:
            yield from _compare(GATE_KEYS, (gate, now[gate.name]), f"gates.{gate.name}.")
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
            yield from _compare(HOOK_KEYS, (hook, now[hook.name]), f"hooks.{hook.name}.")


def _compare(
    keys: tuple[Key, ...],
    sides: tuple[Config | Gate | Hook | Review, Config | Gate | Hook | Review],
    place: str,
) -> Iterable[str]:
    for key in keys:
        old, new = (getattr(side, key.field) for side in sides)
        if old == new or not key.weaker:
            continue
        if key.weaker in ("more", "fewer"):
            text = _entries(key.weaker, old, new)
        else:
            text = f"{_shown(old)} → {_shown(new)}" if _is_weaker(key.weaker, old, new) else ""
        if text:
            yield f"{place}{key.name}: {text}"


def _is_weaker(way: str | tuple[str, ...], old: Any, new: Any) -> bool:  # noqa: ANN401 - a value of any setting
    """Tell whether a change of a value weakens, by the column `weaker` of the table of keys."""
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


def _entries(
    way: str | tuple[str, ...], old: tuple[str, ...] | None, new: tuple[str, ...] | None
) -> str:
    """Return which entries too many, or too few, a list has now. None: all."""
    if way == "fewer" and old is None:
        return f"all → {_shown(new)}"
    if new is None:
        return ""
    had, has = old or (), new
    gone = [one for one in had if one not in has]
    added = [one for one in has if one not in had]
    # A pattern with `!` takes away what others have put in.
    back = [one for one in added if one.startswith("!")]
    more = [one for one in added if one not in back]
    lost = [one for one in gone if one.startswith("!")]
    if way == "more":
        wrong = ([f"+ {one}" for one in more], [f"- {one}" for one in lost])
    else:
        less = [one for one in gone if one not in lost]
        wrong = ([f"- {one}" for one in less], [f"+ {one}" for one in back])
    return ", ".join([*wrong[0], *wrong[1]])


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
