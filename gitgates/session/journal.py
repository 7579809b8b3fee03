"""The entries of a session's journal: each kind is a record, and states are folded from them.

A kind is declared in `facts.py` of whoever writes it: of the session, or of a feature. On disk an
entry is a JSON object: `what` is its kind, `v` the version of that kind, `t` the time, and beside
these the fields of the record; a field that has its default is left out. Entries of an unknown
kind, or of a newer version, stay in the journal and are passed over, so an older gitgates can
read what a newer one wrote.
"""

from __future__ import annotations

from gitgates.core.agent_types import Point

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
_VERSIONS: dict[Any, int] = {}  # record → the version of its kind, where that is not the first
_LAID_FLAT: dict[Any, str] = {}  # record → the field whose items stand beside the other fields


def entry(what: str, *, version: int = 1, laid_flat: str = "") -> Callable[[type[_T]], type[_T]]:
    """Return a decorator that declares a kind of entry, a `LazyRecord`."""

    def declare(record: type[_T]) -> type[_T]:
        KINDS[record] = what
        if version > 1:
            _VERSIONS[record] = version
        if laid_flat:
            _LAID_FLAT[record] = laid_flat
        return record

    return declare


def version_of(record: Any) -> int:  # noqa: ANN401 - the class of a record
    """Return the version of a kind of entry."""
    return _VERSIONS.get(record, 1)


def fact_of(record: Any) -> Fact:  # noqa: ANN401 - of any kind
    """Return an entry as the JSON object that is written, without its time."""
    kind, defaults = record.defined_by, record._field_defaults
    fact: Fact = {"what": KINDS[kind]}
    if kind in _VERSIONS:
        fact["v"] = _VERSIONS[kind]
    for name, value in zip(record._fields, record, strict=True):
        if name == _LAID_FLAT.get(kind):
            fact.update(value)
        elif name not in defaults or value != defaults[name]:
            fact[name] = value
    return fact


def is_a(fact: Mapping[str, Any], *records: Any) -> bool:  # noqa: ANN401 - classes of records
    """Return whether an entry is of one of these kinds, in a version that is known."""
    what, version = fact.get("what"), fact.get("v", 1)
    for record in records:
        if KINDS[record] == what:
            return bool(version <= _VERSIONS.get(record, 1))
    return False


def of_kind(facts: Iterable[Fact], *records: Any) -> list[Fact]:  # noqa: ANN401 - classes of records
    """Return the entries of these kinds, in versions that are known."""
    versions = {KINDS[record]: _VERSIONS.get(record, 1) for record in records}
    return [fact for fact in facts if fact.get("v", 1) <= versions.get(fact.get("what", ""), 0)]


def stamp_of(fact: Fact) -> float:
    """Return when an entry was written, since the epoch; 0 if unknown."""
    stamp = fact.get("t")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def point_of(fact: Fact) -> Point:
    """Return the snapshot that an entry names."""
    return Point(tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"]))


class Projection(Generic[_T]):
    """A fold over a journal: how each kind of entry changes the fields of a record.

    While entries are taken in, the fields are those of a dict, with more that only the folds use.
    """

    def __init__(self, record: Any, folds: Mapping[Any, Fold], **more: Any) -> None:  # noqa: ANN401 - of any type
        self._folds = {
            KINDS[entry_type]: (_VERSIONS.get(entry_type, 1), fold)
            for entry_type, fold in folds.items()
        }
        self._record, self._first = record, {**record()._asdict(), **more}

    def new(self) -> dict[str, Any]:
        """Return the state of a journal that is empty. Dicts may be changed in place."""
        return {k: dict(v) if isinstance(v, dict) else v for k, v in self._first.items()}

    def take(self, state: dict[str, Any], entries: Iterable[Fact]) -> None:
        """Apply entries in order. Unknown ones are passed over."""
        folds = self._folds
        for entry in entries:
            try:
                if versioned := folds.get(entry["what"]):
                    version, fold_in = versioned
                    if entry.get("v", 1) <= version:
                        fold_in(state, entry)
            except NOT_OURS:
                continue

    def freeze(self, state: dict[str, Any]) -> _T:
        """Return the record."""
        record: _T = self._record(**{name: state[name] for name in self._record._fields})
        return record

    def fold(self, entries: Iterable[Fact]) -> _T:
        """Fold entries into a record."""
        state = self.new()
        self.take(state, entries)
        return self.freeze(state)
