"""The state that the beginning of a long journal is folded into: a cache beside it.

A session of days has tens of thousands of lines, and a hook that folded them all would take longer
with each line. The file has the beginning's length and last bytes: if those differ now, or another
version wrote it, it does not count.
"""

from __future__ import annotations

from gitgates.core.lifecycle import RETRY_HOOKS
from gitgates.journal.entries import Baseline, Beginning, Round, Session
from gitgates.store.files import read_cached, read_tail, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.store.log import Journal

ENDING = ".folded"
_VERSION = 3  # of the folds
_FORMAT = (_VERSION, *(kind._fields for kind in (Session, Beginning, Round, Baseline)))
_LAST_BYTES = 256
_PASSED = "passed"
_MOST = 200  # prompts, deliveries, and rounds


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
    state["beginning"] = Beginning(*state["beginning"])
    state["rounds"] = tuple([Round(*fields) for fields in state["rounds"]])
    state["baselines"] = {name: Baseline(*fields) for name, fields in state["baselines"].items()}
    return state


def remember(journal: Journal, state: dict[str, Any]) -> None:
    """Keep the state that a journal was folded into, as far as it was read."""
    length, rounds = journal.read_to, state["rounds"]
    kept = {
        **state,
        "rounds": [tuple(round_) for round_ in (*_counted(rounds[:-_MOST]), *rounds[-_MOST:])],
        "beginning": tuple(state["beginning"]),
        "baselines": {name: tuple(baseline) for name, baseline in state["baselines"].items()},
        "prompts": _newest(state["prompts"]),
        "deliveries": _newest(state["deliveries"]),
    }
    try:
        last = _last_bytes(journal, length)
        replace_cached(_file(journal), (_FORMAT, length, last, kept), sync=False)
    except OSError:
        return  # it is folded again


def _counted(rounds: tuple[Round, ...]) -> list[Round]:
    """Return the rounds that count in the whole session: blocks, and the passes that ended them."""
    blocked, counted = set[tuple[str, ...]](), list[Round]()
    for round_ in rounds:
        cycle = round_.hook, round_.agent, round_.prompt, round_.gates
        has_passed = round_.outcome == _PASSED
        if round_.hook in RETRY_HOOKS and (not has_passed or cycle in blocked):
            counted.append(round_)
            (blocked.discard if has_passed else blocked.add)(cycle)
    return counted


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    return {key: values[key] for key in [*values][-_MOST:]}


def _file(journal: Journal) -> str:
    return journal.path_abs.removesuffix(".jsonl") + ENDING


def _last_bytes(journal: Journal, length: int) -> bytes:
    start = max(length - _LAST_BYTES, 0)
    return read_tail(journal.path_abs, start, length - start) or b""
