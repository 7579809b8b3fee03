"""What was seen, as tables; one of them is a part of docs/explanation/safety.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios import Seen

    # (row, manager) → what was seen
    Found = dict[tuple[str, str], Seen]

BEGIN = "<!-- made by `make compare-safety`: begin -->"
END = "<!-- made by `make compare-safety`: end -->"

# What differs from run to run, and what only says how the gate itself ended.
_CHANGING = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
    (r"\(process \d+\)", "(process N)"),
    (r"\d{8}T\d{6}Z-\d+", "TIME-N"),
    (r"(?<=TIME-N/)[0-9a-f]{12}\b", "BLOB"),
    (r"(?<=patch)\d+-\d+|\d+-\d+(?=\.patch)", "N"),
    (r" +\d+\.\d+ s\b", ""),
    (r"^gate\.{5,}(Passed|Failed)?", ""),
    (r"^│?\s*", ""),
)
_NOISE = re.compile(
    r"$|- hook id|- duration|[╭╰─]|lefthook +v|┃|summary:|✓|> git|Checking"
    r"|error: (while|patch|a\.txt)|line \d+$|gate +(passed|killed)"
    r"|gitgates pre-\w+: 1 gate passed|gitgates: to see more: "
    r"|Check the log|- exit code|- files were modified"
)


def words(said: str, folder: str) -> str:
    """Return what a manager said of the person's work: no times, no colours, no gate's result."""
    lines = []
    # The Python around lefthook may or may not get to print one, when its group is interrupted.
    said, _, _ = said.replace(folder, "…").partition("Traceback (most recent call last)")
    for line in said.splitlines():
        for pattern, instead in _CHANGING:
            line = re.sub(pattern, instead, line)  # noqa: PLW2901 - one after another
        if not _NOISE.match(line.strip()):
            lines.append(_escape(line.strip()))
    return "<br>".join(lines)


def _escape(line: str) -> str:
    for char in "\\|*_<":
        line = line.replace(char, f"\\{char}")
    return line


def summary(found: Found, names: Sequence[str], versions: Sequence[str]) -> str:
    """Return the table of the page: a row for each scenario, a cell for each manager."""
    lines = [f"Compared: {', '.join(versions)}.", ""]
    lines += _head("while the hook runs", *names)
    lines += [
        _line(row, *(_verdict(found[row, name]) for name in names)) for row in _rows_of(found)
    ]
    return "\n".join(lines)


def observations(found: Found, names: Sequence[str]) -> str:
    """Return a table of all that was seen, for whoever plays the scenarios."""
    lines = _head(
        "while the hook runs",
        "",
        "unstaged changes",
        "edit of the other process, or what the gates saw",
        "programs of the hook",
        "left behind",
        "exit status",
        "output",
    )
    lines += [
        _line(row if name == names[0] else "", name, *found[row, name])
        for row in _rows_of(found)
        for name in names
    ]
    return "\n".join(lines)


def _rows_of(found: Found) -> list[str]:
    return list(dict.fromkeys(row for row, _name in found))


def fill(page: str, made: str) -> str:
    """Return the page with what is made between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def _verdict(seen: Seen) -> str:
    if not seen.other:
        return f"{seen.work}; programs {seen.gates}" if seen.gates else seen.work
    return seen.other if seen.work == "in place" else f"{seen.other}; yours {seen.work}"


def _head(*cells: str) -> list[str]:
    return [_line(*cells), _line(*("---" for _ in cells))]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
