"""Load YAML safely. Cold: imports PyYAML.

By aliases and merge keys, a few lines can expand to billions of values, or be nested deeper than
the stack of the parser, which is written in C.
"""

from __future__ import annotations

from typing import Any

import yaml

from gitgates.core.limits import LONGEST, too_long

_DEEPEST = 100
_MOST = 100_000  # values


def load(text: str | bytes, *, kind: str = "SafeLoader") -> Any:  # noqa: ANN401 - any YAML
    """Return the only document of a text; None if there is nothing in it.

    Raises: yaml.YAMLError if it is not valid YAML, stands for too much, or cannot be built.
    """
    maker: Any = getattr(yaml, f"C{kind}", getattr(yaml, kind))
    refuse_too_deep(text, maker)
    try:
        loader = maker(text)
        node = loader.get_single_node()
        _refuse_too_much(node)
        return None if node is None else loader.construct_document(node)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML takes the value of an explicit tag, such as `!!bool x`, for granted.
        raise yaml.YAMLError(f"a value does not fit its tag: {error!r}") from error


def load_nodes(text: str) -> Any:  # noqa: ANN401 - PyYAML has no types
    """Return the node of the only document of a text, with lines; None if there is nothing.

    Raises: ValueError if it is not valid YAML, or stands for too much.
    """
    maker: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        refuse_too_deep(text, maker)
        node = maker(text).get_single_node()
        _refuse_too_much(node)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return node


def load_texts(text: str) -> Any:  # noqa: ANN401 - any YAML
    """Return the only document of a text with all scalars as texts; "" if there is nothing.

    Raises: ValueError if it is not valid YAML, or stands for too much.
    """
    try:
        document = load(text, kind="BaseLoader")
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return "" if document is None else document


def refuse_too_deep(text: str | bytes, kind: Any) -> None:  # noqa: ANN401 - PyYAML has no types
    """Raise yaml.YAMLError if a text is not valid YAML, is nested too deeply, or is too long."""
    if len(text) > LONGEST:
        raise yaml.YAMLError(too_long(len(text)))
    depth = 0
    for count, event in enumerate(yaml.parse(text, kind)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {_DEEPEST} deep")
        if count > 3 * _MOST:
            raise yaml.YAMLError(f"it has more than {_MOST} values")


def _refuse_too_much(node: yaml.Node | None) -> None:
    pending: list[Any] = [node]
    count = 0
    while pending:
        current = pending.pop()
        count += 1
        if isinstance(current, yaml.MappingNode):
            pending += [child for pair in current.value for child in pair]
        elif isinstance(current, yaml.SequenceNode):
            pending += current.value
        if count > _MOST:
            raise yaml.YAMLError(f"its aliases expand to more than {_MOST} values")
