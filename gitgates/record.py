"""The base of every record: an immutable tuple with named fields.

Readers and type checkers see `typing.NamedTuple`. At run time a record class is made by the few
lines below instead, because a hook that defines twenty records the usual way spends longer on that
than on git (20 `NamedTuple`s and `import typing`: 16 ms; these: under 1 ms).

A record is built by keyword and read by name. `_replace` and `_asdict` are as in `NamedTuple`.
"""

from __future__ import annotations

__all__ = ["Record"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from _collections import _tuplegetter  # what `collections.namedtuple` itself uses

    class _RecordType(type):
        """Turns the annotations of a class body into tuple fields."""

        def __new__(mcs, name, bases, body):
            cls = type.__new__(mcs, name, bases, {**body, "__slots__": ()})
            cls._fields = cls.__match_args__ = tuple(body.get("__annotations__", ()))
            cls._names = frozenset(cls._fields)
            cls._defaults = {field: body[field] for field in cls._fields if field in body}
            for index, field in enumerate(cls._fields):
                setattr(cls, field, _tuplegetter(index, None))
            return cls

    class Record(tuple, metaclass=_RecordType):
        """An immutable record; subclasses only list their fields."""

        def __new__(cls, *args, **kwargs):
            values = {**cls._defaults, **dict(zip(cls._fields, args, strict=False)), **kwargs}
            if len(args) > len(cls._fields) or values.keys() != cls._names:
                _refuse(cls, args, values)
            return tuple.__new__(cls, [values[field] for field in cls._fields])

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            shown = ", ".join(f"{field}={value!r}" for field, value in self._asdict().items())
            return f"{type(self).__name__}({shown})"

    def _refuse(cls, args, values):
        missing = [field for field in cls._fields if field not in values]
        unknown = [field for field in values if field not in cls._fields]
        raise TypeError(
            f"{cls.__name__}: missing {missing}, unknown {unknown}, {len(args)} positional"
        )
