"""The useful head and tail of an output, within a budget and safely fenced. Cold and pure.

Lengths are UTF-16 code units, which is what agents' hosts count.
"""

from __future__ import annotations

import re
from itertools import groupby

from gitgates.clean import counted, plain
from gitgates.engine.normalise import normalise

_LONGEST_LINE = 400
_TAIL_SHARE = 0.6  # most tools sum up at the end
_FEW = 3  # lines that were shown before are left out where they are more than so many in a row
_TICKS = re.compile("`{3,}")


def units(text: str) -> int:
    """Return how long a text is for a host that counts UTF-16 code units."""
    return len(text.encode("utf-16-le", "replace")) // 2


def clip(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` units; no character is cut in two."""
    return text.encode("utf-16-le", "replace")[: 2 * max(limit, 0)].decode("utf-16-le", "ignore")


def readable(output: bytes) -> list[str]:
    """Return the lines of an output as a reader of it sees them; very long ones are cut."""
    lines = [line.rstrip() for line in plain(output).strip("\n").split("\n")]
    cut = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} […]" for line in lines]
    return cut if any(cut) else []


def excerpt(lines: list[str], limit: int, log: str = "") -> str:
    """Return the head and the tail of the lines, at most `limit` units, the gap marked."""
    whole = "\n".join(lines)
    if units(whole) <= limit:
        return whole
    room = limit - units(_gap(len(lines), log))
    tail = _fitting(lines[::-1], int(room * _TAIL_SHARE))[::-1]
    head = _fitting(lines[: len(lines) - len(tail)], room - units("\n".join([*tail, ""])))
    gap = _gap(len(lines) - len(head) - len(tail), log)
    return clip("\n".join((*head, gap, *tail)), limit)


def collapse_known(lines: list[str], known: frozenset[str]) -> list[str]:
    """Return the lines, each longer run of known ones as a mark. `known`: normalised lines."""
    if not known:
        return lines
    known |= {""}
    shown: list[str] = []
    for is_known, run in groupby(lines, lambda line: normalise(line) in known):
        those = list(run)
        mark = f"[... {len(those)} lines as in an earlier attempt ...]"
        shown += [mark] if is_known and len(those) > _FEW else those
    return shown


def fenced(text: str) -> str:
    """Return a text between fences that nothing in it can close."""
    fence = "`" * fence_length(text)
    return f"{fence}\n{text}\n{fence}"


def fence_length(text: str) -> int:
    """Return how many backticks no run of them in a text reaches."""
    return max(map(len, _TICKS.findall(text)), default=2) + 1


def share(wants: list[int], budget: int) -> list[int]:
    """Return how much of the budget each gets: what a small one leaves goes to the large ones."""
    given = [0] * len(wants)
    left = max(budget, 0)
    for done, at in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
        given[at] = min(wants[at], left // (len(wants) - done))
        left -= given[at]
    return given


def _fitting(lines: list[str], room: int) -> list[str]:
    kept = []
    for line in lines:
        room -= units(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _gap(count: int, log: str) -> str:
    where = f"; all of it: {log}" if log else ""
    return f"[... {counted(count, 'line')} left out{where} ...]"
