"""A run and its attempts as the data of `result.json`: fields, writer, check. Pure and cold.

One cycle of failing, fixing and trying again is one run: each attempt, a process of its own, is
added to the earlier ones. The tables of fields say what is written, check what is read
back, and make a page of the docs.
"""

from __future__ import annotations

import json
import os
import time

from gitgates.core.clean import utf8
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, STOP, VERDICTS, WARN, Decision, GateResult, Visit
from gitgates.engine.plan.walk import CANCELLED, new_failures
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from gitgates.core.failure import Failure
    from gitgates.core.types import Plan

    # Name → the type of its value, and the meaning; a * if it may be left out.
    Fields: TypeAlias = dict[str, tuple[str, str]]

VERSION = 2
_VERSIONS = (1, VERSION)  # that can be read
_MOST = 1e12  # seconds, bytes
_TYPES = {"string": str, "true or false": bool, "object": dict}
_ITEMS = {"list of strings": str, "list of pairs": list, "list of objects": dict}
LONGEST_FIXES = 2000  # characters
WITH_OUTPUT = 20  # attempts: each is written again with every one that follows

# The verdict of an attempt → its status, and its meaning.
OUTCOMES: dict[str, tuple[str, str]] = {
    "passed": ("passed", "no gate failed"),
    "warned": ("passed", "a gate failed, but the host continued"),
    "blocked": ("failed", "a gate blocked; an agent was told, and may try again"),
    "stopped": ("failed", "a gate ended the run, and stopped the agent"),
    "exhausted": ("failed", "a gate still blocked when no retries were left"),
    "not-converging": (
        "failed",
        "the agent was allowed to stop: no progress over several attempts",
    ),
    "breaker": (
        "failed",
        "the agent was allowed to stop: too many blocks in this prompt or session",
    ),
    "cannot-fix": ("failed", "the agent reported that it cannot fix the failures"),
    "could-not-run": ("failed", "no blocking gate could be started, so the result is unknown"),
}

RUN: Fields = {
    "version": ("whole number", f"{VERSION}; changes when a field is removed or changes"),
    "execution_id": ("string", "the run, and the name of its folder"),
    "hook": ("string", "the hook of the first attempt"),
    "host": (
        "string",
        "what fired it: `git`, `pre-commit`, `manual`, `claude`; the client of a headless run",
    ),
    "root": ("string", "the top-level folder of the working tree"),
    "session*": ("string", "the agent's session"),
    "agent*": ("string", "the sub-agent's type"),
    "headless*": (
        "object",
        "of a headless run: `task`, `agent`, `status`, `outcome`, `commit`, `notes`, `turns`",
    ),
    "outcome": ("string", "the verdict of the last attempt"),
    "quality_gates": ("object", "all attempts, and their outcome"),
}

CYCLE: Fields = {
    "retry_attempts": ("whole number", "how many attempts followed the first"),
    "max_retries": (
        "whole number",
        "how many may follow at most; 0 if failures are not sent back to an agent",
    ),
    "final_status": ("string", "`passed` or `failed`: see Outcomes"),
    "total_duration_seconds": (
        "number",
        "all attempts together, without the time in which the agent worked",
    ),
    "attempts": ("list of objects", "oldest first"),
}

ATTEMPT: Fields = {
    "attempt": ("whole number", "its number, from 1"),
    "timestamp": ("string", "when it began, in UTC"),
    "agent_fixes*": (
        "string",
        "the last message of the agent before this attempt, at most 2,000 characters",
    ),
    "hook": ("string", "the hook that fired"),
    "duration_seconds": ("number", "from its start to its decision"),
    "verdict": ("string", "the outcome: see Outcomes"),
    "asked": ("string", "the gate that decided; empty if none did"),
    "reason": ("string", "why, in one line"),
    "tree*": ("string", "the snapshot (a git tree) that the gates saw"),
    "fed_back_bytes": ("whole number", "length of the text sent to the agent"),
    "not_run*": ("list of strings", "gates that did not run"),
    "cannot_fix*": ("list of pairs", "gate and reason, as the agent reported"),
    "notes*": ("list of strings", "notes for a person"),
    "results": ("list of objects", "every gate, in order"),
}

RESULT: Fields = {
    "name": ("string", "the gate"),
    "passed": ("true or false", "whether its status is `passed`"),
    "duration_seconds": ("number", "0 if it did not run"),
    "waited_seconds*": ("number", "how long it waited before that, for a job slot or `resources`"),
    "exit_code*": ("whole number", "its exit status, if it has one"),
    "output": (
        "string",
        "head and tail of standard output and error; empty in all but the newest 20 attempts",
    ),
    "status": (
        "string",
        "how it ended: `passed`, `failed`, `flaky` (it failed, then passed on the same content), …",
    ),
    "signal*": ("whole number", "the signal that ended it"),
    "verdict": ("string", "its effect: `allow`, `warn`, `block`, `stop`"),
    "action": ("string", "the action that applied, such as `CONTINUE` or the name of a gate"),
    "reason*": ("string", "why, if the status does not show it"),
    "reused*": (
        "string",
        "the source of the pass: a run, how many files, the server's cache; of 0 s, nothing ran",
    ),
    "where*": ("string", "the server that it ran on; missing if it ran here or was reused"),
    "action_digest*": (
        "string",
        "the digest of what ran there, `HASH/SIZE`, as the server records it",
    ),
    "remote_failure*": ("string", "why it could not run on a server, if it ran here after that"),
    "log*": (
        "string",
        "the file with the full output, relative to this folder; absolute on standard output",
    ),
    "dropped_bytes*": ("whole number", "the number of bytes of the output that are omitted here"),
    "changed_paths*": ("list of strings", "the files that it changed"),
    "restaged_paths*": ("list of strings", "those of them whose changes were staged again"),
    "called_by*": ("string", "the gate whose action led to it"),
    "rescued_by*": ("string", "the gate that passed at the end of its `on_fail` chain"),
    "observed*": ("true or false", "its failure was only observed"),
    "excused*": ("true or false", "it failed, but none of its failures counts"),
    "accepted*": (
        "whole number",
        "its failures that do not count: accepted ones, and those from before",
    ),
    "new_failures*": ("list of strings", "titles of those that do, if others do not"),
    "metrics*": ("numbers by name", "its `metrics`, from its output"),
    "failures*": (
        "list of objects",
        "those in its output, if it has the key `failures`; at most 1,000, in the last 20 attempts",
    ),
}

FAILURE: Fields = {
    "fingerprint": (
        "string",
        "16 hex digits: [how failures are compared](../explanation/failures.md#fingerprints)",
    ),
    "title": ("string", "all of it in one line, of at most 200 characters"),
    "path*": ("string", "the file, from the root of the working tree"),
    "line*": ("whole number", "from 1"),
    "column*": ("whole number", "as the tool counts them"),
    "rule*": ("string", "the rule that is broken"),
    "message*": ("string", "at most 500 characters"),
    "severity": ("string", "`error`, `warning` or `note`; `error` if the tool does not say it"),
    "accepted*": ("true or false", "it does not count"),
}


class AttemptReport(Record):
    """One firing of a hook: the results of its gates, and the verdict."""

    hook: str
    host: str
    root: str
    timestamp_s: float  # since the epoch
    duration_s: float
    decision: Decision
    verdict: str  # a word of OUTCOMES
    tree: str = ""  # the snapshot that the gates saw; empty: not known
    session: str = ""
    agent: str = ""
    agent_fixes: str = ""  # the agent's last message: what it did before this attempt
    fed_back_bytes: int = 0
    notes: tuple[str, ...] = ()  # besides those of the decision
    cannot_fix: tuple[tuple[str, str], ...] = ()  # gate and reason


def outcome_of(decision: Decision) -> str:
    """Return the verdict of an attempt without policies."""
    if decision.verdict < BLOCK:
        return "warned" if decision.verdict == WARN else "passed"
    deciding = {v.result.status for v in decision.visits if v.verdict == decision.verdict}
    if deciding == {"not-started"}:
        return "could-not-run"
    return "stopped" if decision.verdict == STOP else "blocked"


def attempt_of(decision: Decision, plan: Plan, began_s: float) -> AttemptReport:
    """Return the only attempt of a run without retries."""
    return AttemptReport(
        hook=plan.event.name,
        host=plan.event.host,
        root=plan.event.root_abs,
        timestamp_s=began_s,
        duration_s=max(time.time() - began_s, 0.0),
        decision=decision,
        verdict=outcome_of(decision),
    )


def add_attempt(
    document: dict[str, Any] | None, execution_id: str, attempt: AttemptReport, max_retries: int
) -> dict[str, Any]:
    """Return the document with an attempt appended. None, or not ours: a new one."""
    earlier = document if document and is_sound(document) else {}
    before = earlier.get("quality_gates", {}).get("attempts", [])
    attempts = [*before, _attempt(attempt, len(before) + 1, execution_id)]
    old, new = attempts[:-WITH_OUTPUT], attempts[-WITH_OUTPUT:]
    cycle = {
        "retry_attempts": len(attempts) - 1,
        "max_retries": max_retries,
        "final_status": OUTCOMES[attempt.verdict][0],
        "total_duration_seconds": round(sum(a["duration_seconds"] for a in attempts), 3),
        "attempts": [
            *({**a, "results": [_without_output(r) for r in a["results"]]} for a in old),
            *new,
        ],
    }
    run = {**_run(attempt, execution_id), **earlier, "version": VERSION}
    return _filled(RUN, {**run, "outcome": attempt.verdict, "quality_gates": cycle})


def _without_output(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in result if name != "failures"} | {"output": ""}


def run_fields(attempt: AttemptReport) -> dict[str, Any]:
    """Return a run of one attempt as one object: its own fields, and those of the attempt."""
    run = _run(attempt, os.path.basename(attempt.decision.run_abs))
    return {**_filled(RUN, run), **_attempt(attempt, 1, "")}


def as_utf8(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Return plain data as JSON can hold it: what is not valid UTF-8 is replaced.

    Names that are not UTF-8 have surrogates, and an agent's message may: JSON has none.
    """
    return json.loads(utf8(json.dumps(value, ensure_ascii=False)))


def _run(attempt: AttemptReport, execution_id: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "execution_id": execution_id,
        "hook": attempt.hook,
        "host": attempt.host,
        "root": attempt.root,
        "session": attempt.session,
        "agent": attempt.agent,
    }


def _attempt(attempt: AttemptReport, number: int, execution_id: str) -> dict[str, Any]:
    decision = attempt.decision
    fields = {
        "attempt": number,
        "timestamp": utc(attempt.timestamp_s),
        "agent_fixes": attempt.agent_fixes[:LONGEST_FIXES] if number > 1 else "",
        "hook": attempt.hook,
        "duration_seconds": round(attempt.duration_s, 3),
        "verdict": attempt.verdict,
        "asked": decision.decided_by,
        "reason": decision.reason,
        "tree": attempt.tree,
        "fed_back_bytes": attempt.fed_back_bytes,
        "not_run": list(decision.not_run),
        "cannot_fix": [list(pair) for pair in attempt.cannot_fix],
        "notes": list(dict.fromkeys((*decision.notes, *attempt.notes))),
        "results": [_visit(visit, execution_id) for visit in decision.visits],
    }
    return _filled(ATTEMPT, fields)


def result_fields(result: GateResult, execution_id: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
    """Return the result of one gate, and more of its fields. No execution_id: of no folder."""
    fields = {
        "name": result.gate,
        "passed": result.status == "passed",
        "duration_seconds": round(result.duration_s, 3),
        "waited_seconds": round(result.waited_s, 3) or None,
        "exit_code": result.exit_status,
        "output": result.output.decode("utf-8", "replace"),
        "status": result.status,
        "signal": result.signal,
        "reason": result.reason,
        "reused": result.origin.reused,
        "where": result.origin.where,
        "action_digest": result.origin.action_digest,
        "remote_failure": result.origin.remote_failure,
        "log": _log(result, execution_id),
        "dropped_bytes": result.dropped_bytes or None,
        "changed_paths": list(result.changed_paths),
        "restaged_paths": list(result.restaged_paths),
        "excused": bool(result.findings.excused),
        "accepted": len(result.findings.accepted) or None,
        "new_failures": new_failures(result),
        "metrics": dict(result.findings.metrics),
        "failures": [
            _failure(failure, result.findings.accepted) for failure in result.findings.failures
        ],
    }
    return _filled(RESULT, {**fields, **more})


def _failure(failure: Failure, accepted: tuple[str, ...]) -> dict[str, Any]:
    fields = {**failure._asdict(), "accepted": failure.fingerprint in accepted}
    return _filled(FAILURE, {name: value or None for name, value in fields.items()})


def _visit(visit: Visit, execution_id: str) -> dict[str, Any]:
    return result_fields(
        visit.result,
        execution_id,
        verdict=VERDICTS[visit.verdict],
        action=visit.action,
        called_by=visit.called_by,
        rescued_by=visit.rescued_by,
        observed=bool(visit.would),
    )


def _filled(fields: Fields, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values in the order of the table, as UTF-8, without empty ones of a *."""
    filled = {}
    for field in fields:
        name = field.rstrip("*")
        value = values.get(name)
        is_empty = value is None or value is False or value in ("", [], {})
        if name in values and (name == field or not is_empty):
            filled[name] = value
    plain: dict[str, Any] = as_utf8(filled)
    return plain


def _log(result: GateResult, execution_id: str) -> str:
    """Return the log's path from the folder of the run. A push may have gates of several runs."""
    if not execution_id:
        return result.log_abs
    _, separator, path = result.log_abs.rpartition("/runs/")
    if not separator:
        return ""
    run, _, inside = path.partition("/")
    return inside if run == execution_id else f"../{path}"


def details(result: dict[str, Any]) -> list[str]:
    """Return what is known of a gate's result beside its status, in a few words each."""
    blocked = result["verdict"] in ("block", "stop")
    conditions = {
        "observed": result.get("observed"),
        "accepted": result.get("excused"),
        f"on_pass: {result['action']}": blocked and result["passed"],
    }
    numbers = [f"{name} {number:.12g}" for name, number in result.get("metrics", {}).items()]
    reason, reused, where = (result.get(name) for name in ("reason", "reused", "where"))
    return [
        *(word for word, holds in conditions.items() if holds),
        *([f"reused: {reused}"] if reused else []),
        *([f"on {where}"] if where else []),
        *numbers,
        *([reason] if reason else []),
    ]


def attempts_made(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a run's attempts: none if a headless run's agent failed before its first."""
    attempts: list[dict[str, Any]] = document["quality_gates"]["attempts"]
    first = attempts[0]
    has_none = "headless" in document and first["verdict"] == "could-not-run"
    return [] if has_none and not first["results"] else attempts


def failed_gates(document: dict[str, Any]) -> list[str]:
    """Return the gates that did not pass in the last attempt of a run."""
    return [
        result["name"]
        for result in document["quality_gates"]["attempts"][-1]["results"]
        if not result["passed"]
        and result["status"] not in ("skipped", "unchecked", "flaky")
        and result.get("reason") != CANCELLED
    ]


def turn_cost(turn: dict[str, Any]) -> str:
    """Return the cost of a turn: seconds, and tokens if the client reported them."""
    tokens = f", {turn['tokens']:,} tokens" if turn.get("tokens") is not None else ""
    return f"{turn['seconds']:.1f} s{tokens}"


def is_sound(document: object) -> bool:
    """Return whether a document has the expected schema."""
    if not _has(document, RUN) or not isinstance(document, dict):
        return False
    cycle = document["quality_gates"]
    return (
        document["version"] in _VERSIONS
        and document["outcome"] in OUTCOMES
        and _has(cycle, CYCLE)
        and bool(cycle["attempts"])
        and all(
            _has(attempt, ATTEMPT)
            and attempt["verdict"] in OUTCOMES
            and all(_has(result, RESULT) for result in attempt["results"])
            for attempt in cycle["attempts"]
        )
    )


def _has(value: object, fields: Fields) -> bool:
    return isinstance(value, dict) and all(
        _fits(value[name.rstrip("*")], kind) if name.rstrip("*") in value else name.endswith("*")
        for name, (kind, _meaning) in fields.items()
    )


def _fits(value: Any, kind: str) -> bool:  # noqa: ANN401 - any JSON
    if kind in _ITEMS:
        return isinstance(value, list) and all(isinstance(item, _ITEMS[kind]) for item in value)
    if kind == "numbers by name":
        return isinstance(value, dict) and all(_fits(number, "number") for number in value.values())
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind])
    # JSON has no infinity, but Python reads and writes one.
    return type(value) in (int, float if kind == "number" else int) and abs(value) < _MOST
