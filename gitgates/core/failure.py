"""The record of one failure in the output of a gate. Cold: only a gate that failed has some."""

from __future__ import annotations

from gitgates.core.record import Record


class Failure(Record):
    """One failure, as a gate reported it."""

    fingerprint: str  # 16 hex digits
    title: str  # one line
    # What is known of it apart; journals and proofs keep only the two above.
    path: str = ""  # from the root; empty: none, or a file outside of the repository
    line: int = 0  # from 1; 0: not known
    column: int = 0
    rule: str = ""
    message: str = ""  # one line
    severity: str = "error"  # or warning, note, as in SARIF; error if the tool does not say


def say_all(failures: tuple[Failure, ...], output: bytes) -> bool:
    """Return whether failures say all that people can read in an output: it is JSON."""
    return output.lstrip().startswith(b"{") and any(failure.path for failure in failures)
