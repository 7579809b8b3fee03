"""The base of every record: an immutable tuple with named fields.

Readers and type checkers see `typing.NamedTuple`. At run time a record class is made by the few
lines below instead, because a hook that defines twenty records the usual way spends longer on that
than on git (20 `NamedTuple`s and `import typing`: 16 ms; these: under 1 ms).

A record is built by keyword and read by name. `_replace` and `_asdict` are as in `NamedTuple`.
The class of a `LazyRecord` is created on first use: a hook writes a few of the fifty kinds of
journal entries, and creating a class takes 20 µs.
"""

from __future__ import annotations

__all__ = ["LazyRecord", "Record", "lazy"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as lazy
    from typing import NamedTuple as LazyRecord
    from typing import NamedTuple as Record
else:
    from _collections import _tuplegetter  # what `collections.namedtuple` itself uses

    _GETTERS = []  # of the first field, of the second one, …: the same for all records

    class lazy:  # noqa: N801 - a decorator
        """A cached property, as `functools.cached_property`, without its imports."""

        def __init__(self, compute):
            self._compute = compute

        def __get__(self, instance, _owner):
            value = instance.__dict__[self._compute.__name__] = self._compute(instance)
            return value

    class _RecordType(type):
        """Turns the annotations of a class body into tuple fields."""

        def __new__(mcs, name, bases, body):
            fields = tuple(body.get("__annotations__", ()))
            body["_field_defaults"] = {field: body[field] for field in fields if field in body}
            while len(_GETTERS) < len(fields):
                _GETTERS.append(_tuplegetter(len(_GETTERS), None))
            body.update(zip(fields, _GETTERS, strict=False))
            body["__slots__"] = ()
            body["_fields"] = body["__match_args__"] = fields
            return type.__new__(mcs, name, bases, body)

    class Record(tuple, metaclass=_RecordType):
        """An immutable record; subclasses only list their fields."""

        def __new__(cls, *args, **kwargs):
            fields = cls._fields
            values = {**cls._field_defaults, **kwargs}
            if args:
                values.update(zip(fields, args, strict=False))
            if len(args) <= len(fields) == len(values):
                try:
                    return tuple.__new__(cls, map(values.__getitem__, fields))
                except KeyError:
                    pass
            return _refuse(cls, args, values)

        def _replace(self, **changes):
            values = {**self._asdict(), **changes}
            if len(values) != len(self):
                _refuse(type(self), (), values)
            return tuple.__new__(type(self), values.values())

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join([f"{field}={value!r}" for field, value in self._asdict().items()])
            return f"{type(self).__name__}({fields})"

    class _LazyType:
        """Stands for the class of a lazy record, which is `record`."""

        def __init__(self, name, _bases, body):
            self.__name__, self.__doc__ = name, body.get("__doc__")
            self.__module__, self._body = body.get("__module__"), body

        def __call__(self, *args, **kwargs):
            return self.record(*args, **kwargs)

        def __instancecheck__(self, instance):
            return getattr(instance, "defined_by", None) is self

        @lazy
        def record(self):
            return _RecordType(self.__name__, (Record,), {**self._body, "defined_by": self})

    # As this base is an instance, a class statement with it makes another one.
    LazyRecord = _LazyType("LazyRecord", (), {})

    def _refuse(cls, args, values):
        missing = [field for field in cls._fields if field not in values]
        unknown = [field for field in values if field not in cls._fields]
        raise TypeError(
            f"{cls.__name__}: missing {missing}, unknown {unknown}, {len(args)} positional"
        )
