"""Compare two configurations: find what weakens checks, by the column `weaker` of the key tables.

Pure and cold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, TOP_KEYS, Key, Table, tables
from gitgates.core.policy import is_kept
from gitgates.core.types import ACTIONS, Config

# A lower limit is a finding only below this share: a test suite may well have become faster.
_SHARPLY = 0.5


def weaker(before: Config, after: Config) -> list[str]:
    """Return what has become weaker: each place and its change."""
    gates = {gate.name: gate for gate in after.gates}
    hooks = {hook.name: hook for hook in after.hooks}
    texts = [*_compare(TOP_KEYS, before._asdict(), after._asdict(), "")]
    for gate in before.gates:
        if gate.name in gates:
            new = gates[gate.name].table()
            texts += _compare(GATE_KEYS, gate.table(), new, f"gates.{gate.name}.")
        else:
            texts.append(f"gates.{gate.name}: removed")
    for hook in before.hooks:
        if hook.gates and hook.name not in hooks:
            texts.append(f"hooks.{hook.name}: removed, with {', '.join(hook.gates)}")
        elif hook.gates:
            new = hooks[hook.name]._asdict()
            texts += _compare(HOOK_KEYS, hook._asdict(), new, f"hooks.{hook.name}.")
    for name, table in tables().items():
        texts += _weaker_table(table, before.tables.get(name), after.tables.get(name))
    return texts


def _weaker_table(table: Table, old: Any, new: Any) -> Iterable[str]:  # noqa: ANN401 - see `Config`
    if table.id_of:
        entries = {entry["id"]: entry for entry in new or ()}
        for entry in old or ():
            yield from weaker_entry(table.name, entry, entries.get(entry["id"]))
    elif old and new:
        yield from _compare(table.keys, old, new, f"{table.name}.")
    elif old:
        yield f"{table.name}: removed"


def weaker_entry(name: str, old: Mapping[str, Any], new: Mapping[str, Any] | None) -> list[str]:
    """Return what has become weaker in an array entry; nothing if sessions do not keep it."""
    if not is_kept(name, old):
        return []
    place = f"{name}.{old['id']}"
    return [*_compare(tables()[name].keys, old, new, f"{place}.")] if new else [f"{place}: removed"]


def _compare(
    keys: tuple[Key, ...], before: Mapping[str, Any], after: Mapping[str, Any], place: str
) -> Iterable[str]:
    """Yield values that have become weaker, by the column `weaker` of the table of keys."""
    for key in (key for key in keys if key.weaker):
        old, new, way = before[key.field], after[key.field], key.weaker
        if old == new:
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
    # An action that names a gate counts as weaker: its chain is not followed.
    old_rank = ACTIONS.index(old) if old in ACTIONS else 1
    return new not in ACTIONS or ACTIONS.index(new) < old_rank


# way → whether the second value is weaker than the first
_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "any": lambda _old, _new: True,
    "off": lambda _old, new: not new,
    "on": lambda _old, new: bool(new),
    "action": _is_weaker_action,
    "less": lambda old, new: new < old,
    "greater": lambda old, new: bool(new) and (not old or new > old),
    "sharply": lambda old, new: 0 < new < _SHARPLY * old or (not old and new > 0),
    "each": lambda old, new: any(after < before for before, after in zip(old, new, strict=True)),
}


def _entries(way: str, old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> str:
    """Return which entries a list now has too many or too few of. None: all."""
    if way == "fewer" and old is None:
        return f"all → {_shown(new)}"
    if new is None:
        return ""
    removed = [f"- {entry}" for entry in old or () if entry not in new]
    added = [f"+ {entry}" for entry in new if entry not in (old or ())]
    wrong, back = (added, removed) if way == "more" else (removed, added)
    # A pattern with `!` excludes what others include.
    plain = [entry for entry in wrong if not entry.startswith("!", 2)]
    return ", ".join([*plain, *(entry for entry in back if entry.startswith("!", 2))])


def _shown(value: object) -> str:
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple):
        parts = (_shown(entry) for entry in value)
        return f"[{', '.join(parts)}]"
    return f"`{value}`" if value != "" else "nothing"
