"""A run and its attempts as Markdown: `summary.md`. Pure, and cold.

Names and outputs come from anywhere. What has a meaning in Markdown or to a terminal is taken away
or shown as a plain sign, and outputs stand in fences longer than any fence in them.
"""

from __future__ import annotations

import re

from gitgates.clean import counted, plain, plain_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHOWN = 12_000  # characters of one output; result.json has more, and the log all
_HEAD = 3_000  # of them, from the beginning

_MARKS = re.compile(r"([\\`*\[\]<>|&~])")

_ENDS = {
    "passed": "✅ All gates passed after {}",
    "warned": "⚠️ Passed with warnings after {}",
    "blocked": "❌ Failed after {}",
    "stopped": "🛑 Stopped after {}",
    "exhausted": "❌ Failed after {}, no retry was left",
    "not-converging": "❌ Failed after {}, which led nowhere",
    "breaker": "❌ Failed after {}, there were too many blocks",
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
    "skipped": "⏭️ Skipped",
    "not-run": "⏭️ Not run",
}


def summary(document: dict[str, Any]) -> str:
    """Return the Markdown of a document, which must be sound."""
    cycle = document["quality_gates"]
    attempts = cycle["attempts"]
    outcome, last = document["outcome"], attempts[-1]
    final = _ENDS[outcome].format(counted(len(attempts), "attempt"))
    if outcome != "passed" and last["reason"]:
        final += f": {_text(last['reason'])}"
    parts = ["## Quality Gates - Iterative Fix Cycle", f"**Final Status:** {final}"]
    for attempt, after in zip(attempts, [*attempts[1:], None], strict=True):
        parts += _attempt(attempt)
        if after and after.get("agent_fixes"):
            parts.append(f"**Agent Action:** {_text(after['agent_fixes'])}")
        if after:
            parts.append("---")
    allowed = f" of {cycle['max_retries'] + 1} allowed" if cycle["max_retries"] else ""
    parts.append(
        f"**Total Duration:** {cycle['total_duration_seconds']:.1f} seconds\n"
        f"**Total Attempts:** {len(attempts)}{allowed}"
    )
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Return any text as one line in which nothing has a meaning in Markdown but `names`."""
    line = plain_line(text, 0)
    parts = line.split("`")
    if len(parts) % 2 and "``" not in line:
        # Each sign has its partner. Between two of them only the end of a cell has a meaning.
        return "`".join(
            part.replace("|", r"\|") if number % 2 else _MARKS.sub(r"\\\1", part)
            for number, part in enumerate(parts)
        )
    return _MARKS.sub(r"\\\1", line)


def _attempt(attempt: dict[str, Any]) -> list[str]:
    head = _HEADS.get(attempt["verdict"], "Failed")
    stamp = f"*Timestamp: {_text(attempt['timestamp'])}*"
    parts = [f"### Attempt {attempt['attempt']} - {head}\n{stamp}", _table(attempt["results"])]
    shown = [r for r in attempt["results"] if not r["passed"] and r["output"].strip()]
    for result in shown:
        whose = f" ({_text(result['name'])})" if len(shown) > 1 else ""
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
    rules = ["-" * (len(cell) + 2) for cell in head]
    return "\n".join(
        [_row(head), "|" + "|".join(rules) + "|", *(_row(row) for row in rows)],
    )


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _status(result: dict[str, Any]) -> str:
    shown = _STATUSES.get(result["status"], _text(result["status"]))
    details = []
    if not result["passed"] and result["verdict"] == "warn":
        shown = shown.replace("❌", "⚠️")
    if result.get("observed"):
        details.append("observed")
    if result.get("excused"):
        details.append("was there before")
    if result["verdict"] in ("block", "stop") and result["passed"]:
        details.append(f"on_pass: {_text(result['action'])}")
    if result.get("reason"):
        details.append(_text(result["reason"]))
    return f"{shown} ({', '.join(details)})" if details else shown


def _fenced(result: dict[str, Any]) -> str:
    text = plain(result["output"]).strip("\n")
    if len(text) > _SHOWN:
        where = plain_line(result.get("log") or "result.json")
        gap = f"\n[... {len(text) - _SHOWN} characters left out; see {where} ...]\n"
        text = text[:_HEAD] + gap + text[_HEAD - _SHOWN :]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
