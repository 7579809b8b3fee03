"""The state that the beginning of a long journal is folded into: a cache beside it.

A session of days has tens of thousands of lines, and a hook that folded them all would take longer
with each line. The file has the beginning's length and last bytes: if those differ now, or another
version wrote it, it does not count.
"""

from __future__ import annotations

from gitgates.core.lifecycle import RETRY_HOOKS
from gitgates.session.facts import Baseline, Round, Session
from gitgates.store.files import read_cached, read_tail, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.store.log import Journal

ENDING = ".folded"
_VERSION = 1  # of the folds
_FORMAT = (_VERSION, Session._fields, Round._fields, Baseline._fields)
_LAST_BYTES = 256
_PASSED = "passed"
_MOST = 200  # prompts, deliveries, and rounds that passed


def recall(journal: Journal) -> dict[str, Any] | None:
    """Return the state of the beginning of a journal, and have reading go on after that.

    None: it is not known.
    """
    cached = read_cached(_file(journal))
    if not isinstance(cached, tuple) or cached[0] != _FORMAT:
        return None
    state: dict[str, Any]
    _format, length, last, state = cached
    if _last_bytes(journal, length) != last:
        return None
    journal.read_to = length
    state["rounds"] = tuple([Round(*fields) for fields in state["rounds"]])
    state["baselines"] = {name: Baseline(*fields) for name, fields in state["baselines"].items()}
    return state


def remember(journal: Journal, state: dict[str, Any]) -> None:
    """Keep the state that a journal was folded into, as far as it was read."""
    length = journal.read_to
    kept = {
        **state,
        "rounds": [tuple(round_) for round_ in _needed(state["rounds"])],
        "baselines": {name: tuple(baseline) for name, baseline in state["baselines"].items()},
        "prompts": _newest(state["prompts"]),
        "deliveries": _newest(state["deliveries"]),
    }
    try:
        last = _last_bytes(journal, length)
        replace_cached(_file(journal), (_FORMAT, length, last, kept), sync=False)
    except OSError:
        return  # it is folded again


def _needed(rounds: tuple[Round, ...]) -> list[Round]:
    """Return the rounds that count: the newest, and of the others those that did not pass.

    Failures at tool calls no longer count once their gates have passed; those at the end of work
    are blocks, which count in the whole session.
    """
    blocked = {
        _cycle(round_)
        for round_ in rounds
        if round_.outcome != _PASSED and round_.hook in RETRY_HOOKS
    }
    passed: set[tuple[str, ...]] = set()
    needed: dict[int, Round] = {}
    last: dict[tuple[str, ...], int] = {}
    for at in range(len(rounds) - 1, -1, -1):
        round_ = rounds[at]
        cycle = _cycle(round_)
        passed |= {cycle} if round_.outcome == _PASSED else set()
        is_last = last.setdefault((round_.hook, round_.agent, round_.gates), at) == at
        is_over = cycle in passed and cycle not in blocked
        if len(needed) < _MOST or is_last or not is_over:
            needed[at] = round_
    return [needed[at] for at in sorted(needed)]


def _cycle(round_: Round) -> tuple[str, ...]:
    return round_.hook, round_.agent, round_.prompt, round_.gates


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    return {key: values[key] for key in [*values][-_MOST:]}


def _file(journal: Journal) -> str:
    return journal.path_abs.removesuffix(".jsonl") + ENDING


def _last_bytes(journal: Journal, length: int) -> bytes:
    start = max(length - _LAST_BYTES, 0)
    return read_tail(journal.path_abs, start, length - start) or b""
