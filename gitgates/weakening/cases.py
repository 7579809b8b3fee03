"""The cases of a test that runs for each row of a table: how many, and which. Pure.

Only tables that stand there in full are read; one that is computed has no rows here.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from gitgates.weakening.pieces import brackets_at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.weakening.pieces import Piece
    from gitgates.weakening.source import Side

    # Which test a line is in; -1: in none.
    Owner = Callable[[int], int]

_PARAMETRIZE = re.compile(r"\bparametrize\s*(?=\()")
_VALUES = re.compile(r"argvalues\s*=\s*")
_PARAM = re.compile(r"(?:pytest\.)?param\s*(?=\()")
_EACH = re.compile(r"\.(?:each|for)\s*(?=\(\s*\[)")
_EACH_TABLE = re.compile(r"\.(?:each|for)\s*`(?P<rows>[^`]*)`")
_GO_TABLE = re.compile(r"(?:\[\]|\bmap\[\w+\])\*?(?:struct\s*(?P<fields>(?=\{))|\w+\s*(?=\{))")
_JVM_TABLE = re.compile(r"@(?:ValueSource|CsvSource)\s*\(\s*(?:\w+\s*=\s*)?(?=\{)")
_CS_ROW = re.compile(r"\[\s*(?:InlineData|TestCase|DataRow)\s*(?=\()")
_RUST_ROW = re.compile(r"#\[\s*(?:case|test_case)(?:::\w+)?\s*(?=\()")
_LOOP = re.compile(r"\bfor\b[^\n:;{]{0,200}?\b(?:in|of)\s*(?=[\[(])")


def rows_of(
    side: Side, syntax: str, lines: list[int], owner: Owner
) -> tuple[dict[int, list[str]], dict[int, int]]:
    """Return the rows of tests, and how often a loop over a list in a test runs, by test.

    `lines` are where tests begin. A table that is in no test is of the one that follows.
    """
    rows: dict[int, list[str]] = {}
    for place, end, texts in _tables(side, syntax):
        number = owner(side.line_of(place))
        number = bisect_left(lines, side.line_of(end)) if number < 0 else number
        if number < len(lines):
            rows.setdefault(number, []).extend(texts)
    loops: dict[int, int] = {}
    for found in _LOOP.finditer(side.code) if lines else ():
        number, table = owner(side.line_of(found.start())), brackets_at(side, found.end())
        if number >= 0 and table:
            loops[number] = max(loops.get(number, 1), len(elements(table)))
    return rows, loops


def _tables(side: Side, syntax: str) -> Iterable[tuple[int, int, list[str]]]:
    """Yield where each table begins and ends, and its rows."""
    match syntax:
        case "python":
            yield from _parametrized(side)
        case "js":
            yield from _each(side)
        case "go":
            yield from _go_tables(side)
        case "c":
            for found in _JVM_TABLE.finditer(side.code):
                if table := brackets_at(side, found.end()):
                    yield _table(found.start(), table, elements(table))
            yield from _marked(side, _CS_ROW)
        case "rust":
            yield from _marked(side, _RUST_ROW)
        case _:
            return


def _table(start: int, whole: Piece, rows: list[Piece]) -> tuple[int, int, list[str]]:
    return start, start + len(whole.text), [row.plain() for row in rows]


def _marked(side: Side, pattern: re.Pattern[str]) -> Iterable[tuple[int, int, list[str]]]:
    for found in pattern.finditer(side.code):
        if row := brackets_at(side, found.end()):
            yield found.start(), found.end(), [row.plain()]


def _each(side: Side) -> Iterable[tuple[int, int, list[str]]]:
    for found in _EACH.finditer(side.code):
        args = brackets_at(side, found.end())
        if args and (tables := elements(args)):
            yield _table(found.start(), args, elements(tables[0]))
    for found in _EACH_TABLE.finditer(side.text):
        lines = [_squeezed(line) for line in found["rows"].splitlines() if line.strip()]
        yield found.start(), found.end(), lines[1:]


def _parametrized(side: Side) -> Iterable[tuple[int, int, list[str]]]:
    for found in _PARAMETRIZE.finditer(side.code):
        whole = brackets_at(side, found.end())
        args = elements(whole) if whole else []
        named = [arg for arg in args if _VALUES.match(arg.code)]
        values = named or args[1:2]
        if not whole or not values:
            continue
        value = values[0].cut(len(match.group()) if (match := _VALUES.match(values[0].code)) else 0)
        listed = value if value.inside() is not None else _constant(side, value.text)
        if listed:
            rows = [_without_id(row) for row in elements(listed)]
            yield found.start(), found.end() + len(whole.text), rows


def _constant(side: Side, name: str) -> Piece | None:
    """Return the list that a name stands for, where it is of the same file."""
    if not name.isidentifier():
        return None
    found = re.search(rf"^{name}\b[^=\n]*=\s*(?=[\[(])", side.code, re.MULTILINE)
    return brackets_at(side, found.end()) if found else None


def _without_id(row: Piece) -> str:
    """Return a row without what it is called, and without what may mark it."""
    found = _PARAM.match(row.code)
    if not found:
        return row.plain()
    args = [
        arg.plain()
        for arg in elements(row.cut(found.end()))
        if not re.match(r"(?:id|marks)\s*=(?!=)", arg.code)
    ]
    return args[0] if len(args) == 1 else f"({','.join(args)})"


def _go_tables(side: Side) -> Iterable[tuple[int, int, list[str]]]:
    for found in _GO_TABLE.finditer(side.code):
        start = found.end()
        if found["fields"] is not None:
            fields = brackets_at(side, start)
            start += len(fields.text) if fields else 0
        table = brackets_at(side, start)
        if table and all("{" in row.code for row in elements(table)):
            yield _table(found.start(), table, elements(table))


def _squeezed(line: str) -> str:
    return "".join(line.split())
