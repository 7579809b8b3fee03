"""JSON as `json` reads and writes it, by the same C code.

`import json` loads `re` and six more modules, a third of an agent hook's start-up time.
"""

from __future__ import annotations

__all__ = ["dumps", "loads", "loads_strictly"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from json import dumps, loads
    from typing import Any, NoReturn
else:
    try:
        import _json
    except ImportError:  # another Python than C's
        from json import dumps, loads
    else:

        class _Decoder:
            """What `json.JSONDecoder` has, for the scanner."""

            strict = True
            object_hook = object_pairs_hook = None
            parse_float, parse_int, parse_constant = float, int, float
            memo: dict[str, str] = {}

        _scan = _json.make_scanner(_Decoder)

        def loads(text: str | bytes) -> Any:  # noqa: ANN401 - whatever it says
            """Return what a text means, or UTF-8. Raises: ValueError, RecursionError."""
            if isinstance(text, bytes):
                text = text.decode("utf-8", "surrogatepass")
            text = text.strip(" \t\n\r")
            try:
                parsed, end = _scan(text, 0)
            except (StopIteration, SystemError, ValueError):
                end = -1  # the scanner has no error of its own while `json.decoder` is not loaded
            if end != len(text):
                import json  # which says what is wrong

                return json.loads(text)
            return parsed

        def _refuse(value: object) -> NoReturn:
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")

        def dumps(value: object) -> str:
            """Return a value as text in ASCII. Raises: TypeError, ValueError."""
            # In order: default, strings, indent, separators, sort_keys, skipkeys, allow_nan.
            options = (_refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True)
            return "".join(_json.make_encoder({}, *options)(value, 0))


def loads_strictly(raw: bytes) -> Any:  # noqa: ANN401 - whatever it says
    """Parse UTF-8 that somebody else has signed, as every other parser reads it.

    Duplicate names in an object are refused, and so is what only Python reads, such as NaN.

    Raises: ValueError, RecursionError.
    """
    import json  # few read what others have signed

    return json.loads(raw.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")
