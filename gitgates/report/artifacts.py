"""Write and read the results of a run: result.json, summary.md, copies of both and of logs.

    runs/<run-id>/result.json   all attempts of one cycle: report/result.py
    runs/<run-id>/summary.md    the same for people
    runs/<run-id>/open          failures went back to an agent: another attempt may come

Each file is replaced atomically, so a reader finds the whole old or the whole new one. Cold:
if all gates passed in a git hook, nothing is saved.
"""

from __future__ import annotations

import json
import os
import re
import time

from gitgates.core.clean import counted, plain, plain_line
from gitgates.report.feedback import fenced
from gitgates.report.result import (
    OUTCOMES,
    AttemptReport,
    add_attempt,
    as_utf8,
    attempt_of,
    attempts_made,
    details,
    is_sound,
    turn_cost,
)
from gitgates.store import runs
from gitgates.store.files import (
    lock_file,
    make_folder,
    open_state,
    read_state,
    remove_file,
    replace_file,
    sync_folder,
)
from gitgates.store.proofs import read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import Config, Decision, Plan

RESULT = "result.json"
SUMMARY = "summary.md"
PAGE = "report.html"
_WITHOUT_RETRIES = ("git", "pre-commit", "manual")  # hosts without an agent that gets the failures
_LOCK_WAIT_S = 5.0
_MOST_STEP_SUMMARY = 1 << 20  # bytes: GitHub shows nothing of more
_SHOWN = 12_000  # characters of one output; result.json has more, and the log all
_LONGEST_LINE = 2_000
_HEAD = 3_000  # of them, from the beginning
_MARKS = re.compile(r"([\\*\[\]<>|&~])")
_ESCAPED = re.compile(r"\\([\\*\[\]<>|&~`])")
_BARS = re.compile(r"(?<!\\)\|")
_ENDS = {
    "passed": "✅ All gates passed after {}",
    "warned": "⚠️ Passed with warnings after {}",
    "blocked": "❌ Failed after {}",
    "stopped": "🛑 Stopped after {}",
    "exhausted": "❌ Failed after {}, no retries left",
    "not-converging": "❌ Failed after {} without progress",
    "breaker": "❌ Failed after {}, too many blocks",
    "cannot-fix": "❌ Failed after {}, the agent cannot fix it",
    "could-not-run": "❌ Could not run, after {}",
}
_HEADS = {
    "passed": "Passed",
    "warned": "Passed with warnings",
    "stopped": "Stopped",
    "could-not-run": "Could not run",
}
_STATUSES = {
    "passed": "✅ Pass",
    "failed": "❌ Fail",
    "timed-out": "❌ Timed out",
    "killed": "❌ Killed",
    "not-started": "❌ Not started",
    "unchecked": "⚠️ Nothing checked",
    "flaky": "⚠️ Flaky",
    "skipped": "⏭️ Skipped",
    "not-run": "⏭️ Not run",
}


def save(
    attempt: AttemptReport,
    run_abs: str,
    *,
    max_retries: int = 0,
    artifacts_dir: str = "",
    keep_runs: int = 50,
) -> tuple[str, ...]:
    """Add an attempt to its run, copy the run if configured, and prune old runs.

    `run_abs` is the folder of the cycle's first attempt; `artifacts_dir` is relative to the root,
    and empty means no copy. Return what went wrong: a run that cannot be saved is no failure of
    its gates.
    """
    state_abs = os.path.dirname(os.path.dirname(run_abs))
    notes: list[str] = []
    runs.make(run_abs)
    try:
        make_folder(state_abs)
        lock = lock_file(f"{state_abs}/results.lock", wait_s=_LOCK_WAIT_S)
        if lock < 0:
            raise TimeoutError(0, "another run is writing its results")
        try:  # an event can be delivered twice at once
            earlier = _earlier(run_abs, notes)
            _write(run_abs, add_attempt(earlier, os.path.basename(run_abs), attempt, max_retries))
            is_open = attempt.verdict == "blocked" and attempt.host not in _WITHOUT_RETRIES
            _mark_open(run_abs, is_open=is_open)
            if artifacts_dir:
                notes += _copy(run_abs, attempt.root, artifacts_dir)
        finally:
            os.close(lock)
    except OSError as error:
        return (*notes, f"{run_abs}: no results written: {_why(error)}")
    # If no runs are kept, this one is removed as well: it was only for the copy.
    runs.prune(state_abs, keep_runs, run_abs if keep_runs else "")
    return tuple(notes)


def mark_blocked(run_abs: str, by: str, artifacts_dir: str) -> list[str]:
    """Record which policy blocks an agent that the gates let stop; empty: none does any more.

    Return what failed.
    """
    document = read_result(run_abs)
    if document is None:
        return []
    attempt = document["quality_gates"]["attempts"][-1]
    has_warned = any(result["verdict"] == "warn" for result in attempt["results"])
    outcome = "blocked" if by else "warned" if has_warned else "passed"
    attempt |= {"verdict": outcome, "asked": by, "reason": f"`{by}` blocks" if by else ""}
    document["outcome"] = outcome
    document["quality_gates"]["final_status"] = OUTCOMES[outcome][0]
    try:
        _write(run_abs, document)
        _mark_open(run_abs, is_open=bool(by))
    except OSError as error:
        return [f"{run_abs}: no results written: {_why(error)}"]
    return _copy(run_abs, document["root"], artifacts_dir) if artifacts_dir else []


def add_headless(
    run_abs: str,
    facts: dict[str, Any],
    *,
    shared_state_abs: str,
    artifacts_dir: str,
    root_abs: str,
    step_summary_abs: str = "",
) -> tuple[str, ...]:
    """Add the facts of a headless run to its result, and write its page.

    The page draws the metrics of the run's gates, from `shared_state_abs`. The summary is appended
    to `step_summary_abs`, the file that a step of GitHub's CI shows. Return what failed.
    """
    from gitgates.report.page import page  # only such runs have one
    from gitgates.report.statistics import trends

    document = read_result(run_abs)
    if document is None:
        return (f"{run_abs}: no result to update",)
    attempts = document["quality_gates"]["attempts"]
    gates = {result["name"] for attempt in attempts for result in attempt["results"]}
    document["host"] = as_utf8(facts.get("agent", document["host"]))
    document["headless"] = as_utf8({name: fact for name, fact in facts.items() if fact})
    try:
        metrics = tuple(
            {
                "name": f"{series['gate']}: {series['metric']}",
                "values": [v["value"] for v in series["values"]],
            }
            for series in trends(read_all(shared_state_abs))
            if series["gate"] in gates
        )
        _write(run_abs, document)
        replace_file(f"{run_abs}/{PAGE}", page(document, metrics).encode("utf-8", "replace"))
        _mark_open(run_abs, is_open=False)
    except OSError as error:  # what was committed, or rolled back, stays so
        return (f"{run_abs}: no report written: {_why(error)}",)
    notes = _copy(run_abs, root_abs, artifacts_dir) if artifacts_dir else []
    if step_summary_abs:
        try:
            with open(step_summary_abs, "ab") as file:
                room = max(_MOST_STEP_SUMMARY - file.tell(), 0)
                file.write(summary(document).encode()[:room])
        except OSError as error:
            notes.append(f"GITHUB_STEP_SUMMARY: {step_summary_abs}: {_why(error)}")
    return tuple(notes)


def save_run(decision: Decision, plan: Plan, config: Config, began_s: float) -> bytes:
    """Save the run of a hook with one attempt; return messages for a person."""
    if not decision.run_abs:
        return b""  # no gate ran
    from gitgates.report.text import as_bytes, escaped_line  # not for the gates of an agent

    attempt = attempt_of(decision, plan, began_s)
    notes = save(
        attempt, decision.run_abs, artifacts_dir=config.artifacts_dir, keep_runs=config.keep_runs
    )
    return b"".join(as_bytes(f"gitgates: {escaped_line(note)}\n") for note in notes)


def read_result(run_abs: str) -> dict[str, Any] | None:
    """Return the document in `result.json`; None if it is missing or invalid."""
    try:
        document: dict[str, Any] = json.loads(read_state(f"{run_abs}/{RESULT}") or b"")
    except (OSError, ValueError, RecursionError):
        return None
    return document if is_sound(document) else None


def _earlier(run_abs: str, notes: list[str]) -> dict[str, Any] | None:
    """Return the earlier attempts; an unreadable file is kept aside and reported."""
    document = read_result(run_abs)
    if document is None and os.path.lexists(f"{run_abs}/{RESULT}"):
        backup = f"{RESULT}.damaged-{os.getpid()}-{time.time_ns()}"
        os.rename(f"{run_abs}/{RESULT}", f"{run_abs}/{backup}")
        notes.append(
            f"{run_abs}: result.json was damaged; a new one was started, the old one is {backup}"
        )
    return document


def _write(run_abs: str, document: dict[str, Any]) -> None:
    make_folder(run_abs)
    replace_file(f"{run_abs}/{RESULT}", json.dumps(document, indent=2).encode() + b"\n")
    replace_file(f"{run_abs}/{SUMMARY}", summary(document).encode())
    sync_folder(run_abs)


def _mark_open(run_abs: str, *, is_open: bool) -> None:
    """Mark for `runs.prune` whether another attempt may follow."""
    if is_open:
        os.close(open_state(f"{run_abs}/{runs.OPEN}", os.O_WRONLY | os.O_CREAT))
        os.utime(f"{run_abs}/{runs.OPEN}")
    else:
        remove_file(f"{run_abs}/{runs.OPEN}")


def _copy(run_abs: str, root_abs: str, artifacts_dir: str) -> list[str]:
    """Copy results and logs to a folder of this run; return messages.

    Nothing there is removed. The result comes last: if it is there, everything is.
    """
    parent_abs = os.path.normpath(os.path.join(root_abs, artifacts_dir))
    target_abs = f"{parent_abs}/{os.path.basename(run_abs)}"
    root_real = os.path.realpath(root_abs)
    failed = f"{target_abs}: artifacts_dir: no results copied: "
    if os.path.commonpath((os.path.realpath(target_abs), root_real)) != root_real:
        return [f"{failed}a symbolic link points outside the repository"]
    try:
        if not os.path.lexists(parent_abs):
            os.makedirs(parent_abs)
            # What git sees, gates and snapshots see as well: a run would change what it checks.
            replace_file(f"{parent_abs}/.gitignore", b"*\n", mode=None, sync=False)
        logs = (
            os.path.relpath(os.path.join(folder_abs, name), run_abs)
            for folder_abs, _folders, names in os.walk(f"{run_abs}/logs")
            for name in names
        )
        for path in (*logs, PAGE, SUMMARY, RESULT):
            _copy_file(f"{run_abs}/{path}", f"{target_abs}/{path}")
    except OSError as error:
        return [f"{failed}{_why(error)}"]
    return []


def _copy_file(from_abs: str, to_abs: str) -> None:
    """Copy a file, but a log only once."""
    data = read_state(from_abs)
    is_log = to_abs.endswith(".log")
    if data is None or (is_log and os.path.exists(to_abs) and os.path.getsize(to_abs) == len(data)):
        return
    os.makedirs(os.path.dirname(to_abs), exist_ok=True)
    # With the mode that the umask leaves: copies are there to be collected.
    replace_file(to_abs, data, mode=None, sync=False)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def summary(document: dict[str, Any]) -> str:
    """Return the Markdown of a document, which must be sound."""
    cycle, headless = document["quality_gates"], document.get("headless", {})
    attempts, turns = attempts_made(document), headless.get("turns", [])
    outcome, last = document["outcome"], cycle["attempts"][-1]
    final = _ENDS[outcome].format(counted(len(attempts), "attempt"))
    if outcome != "passed" and last["reason"]:
        final += f": {_text(last['reason'])}"
    heading = "Quality Gates - Iterative Fix Cycle" if cycle["max_retries"] else "Quality Gates"
    parts = [f"## {heading}", f"**Final Status:** {final}"]
    parts += [*_headless(headless), *_actions(turns, 1)]
    for number, attempt in enumerate(attempts, 1):
        parts += _attempt(attempt)
        after = attempts[number] if number < len(attempts) else {}
        if actions := _actions(turns, number + 1):
            parts += actions
        elif after.get("agent_fixes"):
            parts.append(f"**Agent Action:** {_text(after['agent_fixes'])}")
        if after:
            parts.append("---")
    allowed = f" of {cycle['max_retries'] + 1} allowed" if cycle["max_retries"] else ""
    totals = [f"**Total Duration:** {cycle['total_duration_seconds']:.1f} seconds"]
    if turns:
        tokens = [turn["tokens"] for turn in turns if "tokens" in turn]
        used = f", {sum(tokens):,} tokens" if tokens else ""
        seconds = sum(turn["seconds"] for turn in turns)
        totals.append(f"**Agent:** {counted(len(turns), 'turn')}, {seconds:.1f} seconds{used}")
    totals.append(f"**Total Attempts:** {len(attempts)}{allowed}")
    parts.append("\n".join(totals))
    return "\n\n".join(parts) + "\n"


def plain_summary(markdown: str) -> str:
    """Return a summary as text for a terminal: tables aligned, output indented, no marks."""
    lines: list[str] = []
    rows: list[list[str]] = []
    fence = ""
    for line in markdown.splitlines():
        if fence:
            if line == fence:
                fence = ""
            else:
                lines.append(f"  | {line}")
        elif line.startswith("|"):
            if not line.startswith("|-"):
                rows.append([_unmarked(cell.strip()) for cell in _BARS.split(line)[1:-1]])
        else:
            lines += _aligned(rows)
            rows = []
            if line.startswith("```"):
                fence = line
            elif line != "---":
                lines.append(_unmarked(line.lstrip("#").strip()))
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, *_aligned(rows)])) + "\n"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _unmarked(text: str) -> str:
    return _ESCAPED.sub(r"\1", re.sub(r"\*\*(.+?)\*\*|(?<!\\)\*(.+?)(?<!\\)\*", r"\1\2", text))


def _headless(headless: dict[str, Any]) -> list[str]:
    """Return the facts of a headless run."""
    mark = "✅ " if headless.get("status") == "passed" else "❌ "
    facts = [
        ("Run", mark + headless.get("outcome", "") if headless else ""),
        ("Prompt", headless.get("task")),
        ("Client", headless.get("agent")),
        ("Commit", headless.get("commit")),
        ("Kept As", headless.get("failed_ref")),
        *(("Note", note) for note in headless.get("notes") or ()),
    ]
    lines = [f"**{name}:** {_text(value[:_LONGEST_LINE])}" for name, value in facts if value]
    return ["\n".join(lines)] if lines else []


def _actions(turns: list[dict[str, Any]], attempt: int) -> list[str]:
    """Return what the agent did before an attempt: its message, and its cost."""
    parts = []
    for turn in turns:
        if turn["attempt"] == attempt:
            message = _text(turn.get("text", "")[:_LONGEST_LINE])
            failed = f"the client failed: {_text(turn['error'])}" if "error" in turn else ""
            words = "; ".join(filter(None, (failed, message))) or "no message"
            parts.append(f"**Agent Action:** ({turn_cost(turn)}) {words}")
    return parts


def _text(text: str) -> str:
    """Return text as one line, escaped for Markdown except for `names`: it comes from anywhere."""
    line = _MARKS.sub(r"\\\1", plain_line(text, 0))
    # If each sign has its partner, they quote a name.
    is_paired = line.count("`") % 2 == 0 and "``" not in line
    return line if is_paired else line.replace("`", r"\`")


def _attempt(attempt: dict[str, Any]) -> list[str]:
    head = _HEADS.get(attempt["verdict"], "Failed")
    stamp = f"*Timestamp: {_text(attempt['timestamp'])}*"
    parts = [f"### Attempt {attempt['attempt']} - {head}\n{stamp}", _table(attempt["results"])]
    with_output = [r for r in attempt["results"] if not r["passed"] and r["output"].strip()]
    for result in with_output:
        whose = f" ({_text(result['name'])})" if len(with_output) > 1 else ""
        parts.append(f"**Error Output:**{whose}\n{_fenced(result)}")
    if not_run := attempt.get("not_run"):
        parts.append(f"**Not Run:** {', '.join(map(_text, not_run))}")
    for gate, reason in attempt.get("cannot_fix", []):
        parts.append(f"**Cannot Fix:** {_text(gate)}: {_text(reason)}")
    parts += [f"**Note:** {_text(note)}" for note in attempt.get("notes", [])]
    return [part for part in parts if part]


def _table(results: list[dict[str, Any]]) -> str:
    if not results:
        return ""
    head = ["Gate", "Status", "Duration"]
    rows = [
        [
            _text(r["name"]),
            _status(r),
            f"{r['duration_seconds']:.1f}s",
            str(r.get("exit_code", "")),
        ]
        for r in results
    ]
    if any(not r["passed"] and "exit_code" in r for r in results):
        head.append("Exit Code")
    rows = [row[: len(head)] for row in rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    rule = "|".join(["-" * (len(cell) + 2) for cell in head])
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _status(result: dict[str, Any]) -> str:
    label = _STATUSES.get(result["status"]) or _text(result["status"])
    if not result["passed"] and result["verdict"] == "warn":
        label = label.replace("❌", "⚠️")
    more = ", ".join(map(_text, details(result)))
    return f"{label} ({more})" if more else label


def _fenced(result: dict[str, Any]) -> str:
    text = plain(result["output"]).strip("\n")
    if len(text) > _SHOWN:
        log_name = plain_line(result.get("log") or "result.json")
        gap = f"\n[... {len(text) - _SHOWN} characters left out; see {log_name} ...]\n"
        text = text[:_HEAD] + gap + text[_HEAD - _SHOWN :]
    return fenced(text)
