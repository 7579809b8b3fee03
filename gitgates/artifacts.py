"""Leave what came of a run where people and programs find it: results, summary, logs. Cold."""

from __future__ import annotations

import json
import os
import time

from gitgates.record import Record
from gitgates.report.artifact import Attempt, add_attempt, is_sound, outcome_of, summary
from gitgates.report.text import as_bytes, shown
from gitgates.store import run_files, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.engine.pipeline import Handled
    from gitgates.types import Config, Decision, Event

_WITHOUT_RETRIES = ("git", "pre-commit", "manual")  # hosts that hand failures to nobody


class Place(Record):
    """Where the artifacts of a run go, and how many of them are kept."""

    state_abs: str
    run_abs: str  # of the first attempt, for those that follow it
    root_abs: str
    artifacts_dir: str = ""  # relative to the root; empty: no copy
    keep_runs: int = 50
    max_retries: int = 0


class Ran(Record):
    """A run that has just ended."""

    event: Event
    config: Config
    decision: Decision
    state_abs: str
    began_s: float  # since the epoch


class Saved(Record):
    """What was left behind."""

    run_abs: str = ""  # empty: nothing could be written
    notes: tuple[str, ...] = ()  # what did not go as it should


def save(place: Place, attempt: Attempt) -> Saved:
    """Add an attempt to its run, copy the run where that is wished, and prune old runs.

    A run that cannot be written down is no failure of its gates: then a note says so.
    """
    run_id = os.path.basename(place.run_abs)
    notes: list[str] = []
    folder = runs.hold(place.run_abs)
    try:
        with run_files.ResultsLock(place.state_abs):
            document = add_attempt(_known(place, notes), run_id, attempt, place.max_retries)
            data = json.dumps(document, indent=2).encode() + b"\n"
            run_files.write_artifacts(place.run_abs, data, summary(document).encode())
            is_open = attempt.verdict == "blocked" and attempt.host not in _WITHOUT_RETRIES
            run_files.mark_open(place.run_abs, is_open=is_open)
            notes += _copied(place, run_id)
    except OSError as error:
        return Saved(notes=(*notes, f"{place.run_abs}: no results written: {_why(error)}"))
    finally:
        folder.release()
    # With none to be kept, this one goes as well: it was for the copy alone.
    runs.prune(place.state_abs, place.keep_runs, place.run_abs if place.keep_runs else "")
    return Saved(run_abs=place.run_abs, notes=tuple(notes))


def save_run(ran: Ran) -> Saved:
    """Save a run of a host that has one attempt, and hands failures to nobody."""
    place = Place(
        state_abs=ran.state_abs,
        run_abs=ran.decision.run_abs,
        root_abs=ran.event.root_abs,
        artifacts_dir=ran.config.artifacts_dir,
        keep_runs=ran.config.keep_runs,
    )
    attempt = Attempt(
        hook=ran.event.name,
        host=ran.event.host,
        root=ran.event.root_abs,
        timestamp_s=ran.began_s,
        duration_s=max(time.time() - ran.began_s, 0.0),
        decision=ran.decision,
        verdict=outcome_of(ran.decision),
    )
    return save(place, attempt)


def save_handled(handled: Handled, state_abs: str, began_s: float) -> bytes:
    """Save the run of a hook; return what a person should know, as lines."""
    if handled.plan is None or handled.decision is None or handled.config is None:
        return b""
    ran = Ran(handled.plan.event, handled.config, handled.decision, state_abs, began_s)
    return b"".join(as_bytes(f"gitgates: {shown(note)}\n") for note in save_run(ran).notes)


def _known(place: Place, notes: list[str]) -> dict[str, Any] | None:
    """Return what earlier attempts left; what cannot be understood is kept aside, and said."""
    raw = run_files.read_result(place.run_abs)
    if raw is None:
        if run_files.read_summary(place.run_abs) is not None:
            notes.append(f"{place.run_abs}: result.json was gone; it begins anew")
        return None
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if is_sound(document):
        found: dict[str, Any] = document
        return found
    kept = run_files.put_damaged_aside(place.run_abs)
    notes.append(f"{place.run_abs}: result.json was damaged; it begins anew, {kept} is the old one")
    return None


def _copied(place: Place, run_id: str) -> list[str]:
    if not place.artifacts_dir:
        return []
    target_abs = os.path.normpath(os.path.join(place.root_abs, place.artifacts_dir, run_id))
    try:
        run_files.copy_artifacts(place.run_abs, target_abs, place.root_abs)
    except OSError as error:
        return [f"{target_abs}: artifacts_dir: no results copied: {_why(error)}"]
    return []


def _why(error: OSError) -> str:
    return error.strerror or str(error)
