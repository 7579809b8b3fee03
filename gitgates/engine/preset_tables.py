"""Parse the output of the tools in presets.toml into single failures. Cold and pure."""

from __future__ import annotations

import os
import re

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_FIXABLE = re.compile(r"\[\*\] ?")
_DIGITS = "0123456789"
_SEVERITIES = {
    **dict.fromkeys(("warning", "warn", "!", "⚠"), "warning"),
    **dict.fromkeys(("note", "notice", "info", "information", "style", "help"), "note"),
    **dict.fromkeys(("i", "ℹ"), "note"),
}


class ParsedFailure(Record):
    """One failure in an output. Only the message is normalised, not the identity."""

    title: str
    message: str = ""
    identity: str = ""  # a test's name; a file and a rule
    # These are not part of a fingerprint.
    place: str = ""  # line and column; distinguishes duplicates within one output
    target: str = ""  # what was run, by its number, where the identity may lack it; the same
    path: str = ""  # as it is printed
    rule: str = ""
    severity: str = "error"  # or warning, note
    shown: str = ""  # the whole message, where `message` is a part


def read_tables() -> dict[str, dict[str, Any]]:
    """Return the tables of presets.toml by name."""
    import tomllib  # if there is no preset, nothing reads the table

    with open(os.path.join(os.path.dirname(__file__), "presets.toml"), "rb") as file:
        return tomllib.load(file)


def find(table: dict[str, Any], text: str) -> Iterable[ParsedFailure]:
    """Return the failures in an output, by the table of its tool."""
    fields = _of_lines(table, text) if "lines" in table else _of_text(table, text)
    failures = [broken_rule({**table.get("defaults", {}), **each}) for each in fields]
    if "rule_in_message" in table:
        failures = [_with_rule(failure, table["rule_in_message"]) for failure in failures]
    errors = [failure for failure in failures if failure.severity == "error"]
    return errors or failures if table.get("errors_first") else failures


def broken_rule(fields: dict[str, str]) -> ParsedFailure:
    """Return a broken rule as a failure. `fields`: the groups of presets.toml."""
    message = " ".join(_FIXABLE.sub("", fields.get("message", "")).split())
    if detail := fields.get("detail"):
        message = f"{message}: {detail}"
    path, rule = fields.get("path", ""), fields.get("rule", "")
    place = fields.get("place", "").replace(",", ":")
    location = f"{path}:{place}: " if path and place else f"{path}: " if path else ""
    what = " ".join(part for part in (rule, message) if part)
    return ParsedFailure(
        title=location + what,
        message=message,
        identity=f"{path}\n{rule}",
        place=place,
        path=path,
        rule=rule,
        severity=_SEVERITIES.get(fields.get("severity", "").lower(), "error"),
    )


def _of_text(table: dict[str, Any], text: str) -> Iterator[dict[str, str]]:
    patterns, header = table["patterns"], table.get("header", "")
    if header:
        patterns = [*patterns, f"^(?P<header>{header})$"]
    context: dict[str, str] = {}
    for match in re.finditer(either(patterns), text, re.MULTILINE):
        groups = match.groupdict().items()
        fields = {name.rstrip(_DIGITS): value for name, value in groups if value is not None}
        if "header" in fields:
            context = fields
            continue
        if "indent" in fields:
            fields["place"] = f"{context.get('place', '')}:{len(fields['indent']) + 1}"
        fields = {**context, **{name: value for name, value in fields.items() if value}}
        if fields.get("path") or not header:
            yield fields


def either(patterns: list[str]) -> str:
    """Join patterns as alternatives, in which each group has the number of its own behind it."""
    return "|".join(
        re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>{number}>", pattern)
        for number, pattern in enumerate(patterns)
    )


def _with_rule(failure: ParsedFailure, pattern: str) -> ParsedFailure:
    match = re.search(pattern, failure.message)
    return failure._replace(rule=match[1]) if match else failure


def _of_lines(table: dict[str, Any], text: str) -> Iterator[dict[str, str]]:
    from gitgates.core.limits import parse_json  # few tools print JSON

    for line in text.split("\n"):
        if not line.startswith("{"):
            continue
        try:
            document = parse_json(line)
        except ValueError:
            continue
        places = {name: find_in(document, keys.split(".")) for name, keys in table["lines"].items()}
        fields = {name: str(value) for name, value in places.items() if _is_plain(value)}
        fields["place"] = ":".join(fields[name] for name in ("line", "column") if name in fields)
        if fields.get("message") and not re.match(table["skip"], fields["message"]):
            yield fields


def find_in(value: Any, keys: Iterable[str | int]) -> Any:  # noqa: ANN401 - any JSON
    """Return what is at some keys of plain data; None if it is not there.

    `[KEY]` is the first item of a list that has something at KEY.
    """
    for key in keys:
        if isinstance(value, list):
            if isinstance(key, str):
                having = (item for item in value if find_in(item, [key.strip("[]")]))
                value = next(having, None)
            else:
                value = value[key] if 0 <= key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
