"""The entries of a session's journal: each kind is a record, and states are folded from them.

A kind is declared in the `facts.py` of the session, or of the feature that writes it. On disk an
entry is a JSON object: `what` is its kind, `t` the time, and the rest the record's fields, without
those that have their defaults. Entries of an unknown kind, and damaged ones, stay in the journal
and are ignored; so a kind whose meaning changes gets another name.
"""

from __future__ import annotations

from gitgates.core.agent_types import WorktreeState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Generic, TypeAlias, TypeVar

    _T = TypeVar("_T")
    Fact: TypeAlias = dict[str, Any]  # an entry as it is read
    Fold: TypeAlias = Callable[[dict[str, Any], Fact], None]
else:
    _T, Generic = None, {None: object}  # a base that takes no notice of its type argument

# The errors on reading an entry that another program has written or damaged.
NOT_OURS = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


KINDS: dict[Any, str] = {}  # record → `what` of its kind


def entry(what: str) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator that declares a kind of entry, a `LazyRecord`."""

    def declare(record: type[_T]) -> type[_T]:
        KINDS[record] = what
        return record

    return declare


def fact_of(record: Any) -> Fact:  # noqa: ANN401 - of any kind
    """Return an entry as the JSON object that is written, without its time."""
    kind, defaults = record.defined_by, record._field_defaults
    fact: Fact = {"what": KINDS[kind]}
    for name, value in zip(record._fields, record, strict=True):
        if name not in defaults or value != defaults[name]:
            fact[name] = value
    return fact


def is_a(fact: Mapping[str, Any], *records: Any) -> bool:  # noqa: ANN401 - classes of records
    """Return whether an entry is of one of these kinds."""
    return any(KINDS[record] == fact.get("what") for record in records)


def of_kind(facts: Iterable[Fact], *records: Any) -> list[Fact]:  # noqa: ANN401 - classes of records
    """Return the entries of these kinds, without damaged ones."""
    fields = {
        KINDS[record]: {*record.record._fields} - {*record.record._field_defaults}
        for record in records
    }
    return [
        fact
        for fact in facts
        if (always_set := fields.get(fact["what"])) is not None and always_set <= fact.keys()
    ]


def stamp_of(fact: Fact) -> float:
    """Return when an entry was written, since the epoch; 0 if unknown."""
    stamp = fact.get("t")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def point_of(fact: Fact) -> WorktreeState:
    """Return the snapshot that an entry names."""
    return WorktreeState(
        tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"])
    )


class Projection(Generic[_T]):
    """A fold over a journal: how each kind of entry changes the fields of a record.

    While entries are taken in, the fields are those of a dict, with more that only the folds use.
    """

    def __init__(self, record: Any, folds: Mapping[Any, Fold], **more: Any) -> None:  # noqa: ANN401 - of any type
        self._folds = {KINDS[entry_type]: fold for entry_type, fold in folds.items()}
        self._record, self._first = record, {**record()._asdict(), **more}

    def new(self) -> dict[str, Any]:
        """Return the state of a journal that is empty. Dicts may be changed in place."""
        return {k: dict(v) if isinstance(v, dict) else v for k, v in self._first.items()}

    def take(self, state: dict[str, Any], entries: Iterable[Fact]) -> int:
        """Apply entries in order; return how many damaged ones are left out."""
        folds, damaged = self._folds, 0
        for entry in entries:
            try:
                if fold_in := folds.get(entry["what"]):
                    fold_in(state, entry)
            except NOT_OURS:
                damaged += 1
        return damaged

    def freeze(self, state: dict[str, Any]) -> _T:
        """Return the record."""
        record: _T = self._record(**{name: state[name] for name in self._record._fields})
        return record

    def fold(self, entries: Iterable[Fact]) -> _T:
        """Fold entries into a record."""
        state = self.new()
        self.take(state, entries)
        return self.freeze(state)
