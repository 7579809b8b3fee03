"""Compare two configurations: which values make the checks weaker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from gitgates.config.keys import Key
from gitgates.core.types import ACTIONS, Advice, Config, Gate, Headless, Hook, Review

Table: TypeAlias = Advice | Config | Gate | Headless | Hook | Review

# How much of a limit must be left, so that less is no finding: a test suite may well be faster.
_SHARPLY = 0.5


def weaker_values(
    keys: tuple[Key, ...], old_side: Table, new_side: Table, place: str
) -> Iterable[str]:
    """Yield the values that have become weaker, by the column `weaker` of a table of keys."""
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
