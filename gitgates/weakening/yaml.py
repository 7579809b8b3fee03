"""Read YAML for comparison: PyYAML's BaseLoader, which keeps scalars as text. Cold and pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Value: TypeAlias = "str | list[Value] | dict[str, Value]"

_MOST = 100_000  # values: with aliases, a few lines can stand for billions


def parse(text: str) -> Value:
    """Return the first document of a text; an empty text where there is none.

    Raises: ValueError where it is no YAML, or stands for too much.
    """
    import yaml  # who reviews pays for it

    from gitgates.yaml_load import refuse_too_deep

    # The loader that is written in C is there wherever PyYAML comes as a wheel.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        refuse_too_deep(text, loader)
        value: Value = next(yaml.load_all(text, loader), None) or ""
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    _refuse_too_much(value)
    return value


def _refuse_too_much(value: Value) -> None:
    left, count = [value], 0
    while left:
        one = left.pop()
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += 1
        if count > _MOST:
            raise ValueError(f"more than {_MOST} values")
