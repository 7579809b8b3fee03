"""What came of a run, as the data of result.json and as the text of summary.md."""

from __future__ import annotations

import json
from typing import Any

import pytest
from artifact_support import START_S, attempt, visit

from gitgates.core.failure import Failure
from gitgates.core.types import STOP, WARN, Visit
from gitgates.report.artifacts import plain_summary, summary
from gitgates.report.result import (
    ATTEMPT,
    CYCLE,
    FAILURE,
    LONGEST_FIXES,
    OUTCOMES,
    RESULT,
    RUN,
    WITH_OUTPUT,
    add_attempt,
    is_sound,
)

TESTS = "FAIL: TestUserCreation (0.00s)\n    Expected user.ID to be set\n"
FIXED = "Fixed user ID initialization in CreateUser function"


def seeds_cycle() -> dict[str, Any]:
    """The cycle that the seed has as its example."""
    first = attempt(visit("Run unit tests", "failed", duration_s=23.5, output=TESTS.encode()))
    second = attempt(
        visit("Run unit tests", "passed", duration_s=24.1, output=b"ok  \tgithub.com\t24.089s"),
        visit("Lint code", "passed", duration_s=8.2),
        visit("Build check", "passed", duration_s=12.1),
        timestamp_s=START_S + 75,
        agent_fixes=FIXED,
    )
    return add_attempt(add_attempt(None, "run-1", first, 3), "run-1", second, 3)


def test_a_summary_as_text_has_no_marks() -> None:
    odd = visit("a|b*", "failed", output=b"**bold** | cell\n# head\n```\n")
    document = add_attempt(None, "run-1", attempt(odd, visit("long name", "passed")), 0)
    assert plain_summary(summary(document)) == (
        "Quality Gates\n\n"
        "Final Status: ❌ Failed after 1 attempt: gate `a|b*` failed\n\n"
        "Attempt 1 - Failed\nTimestamp: 2024-01-15T10:30:00Z\n\n"
        "Gate       Status  Duration  Exit Code\n"
        "a|b*       ❌ Fail  0.0s      1\n"
        "long name  ✅ Pass  0.0s      0\n\n"
        "Error Output:\n  | **bold** | cell\n  | # head\n  | ```\n\n"
        "Total Duration: 0.0 seconds\nTotal Attempts: 1\n"
    )
    parts = seeds_cycle()
    assert f"\nAgent Action: {FIXED}\n\nAttempt 2 - Passed\n" in plain_summary(summary(parts))


def test_the_fields_are_those_of_the_seed_and_ours_beside_them() -> None:
    document = seeds_cycle()
    assert is_sound(document)
    cycle = document["quality_gates"]
    attempts = cycle.pop("attempts")
    assert document == {
        "version": 2,
        "execution_id": "run-1",
        "hook": "Stop",
        "host": "claude",
        "root": "/work",
        "outcome": "passed",
        "quality_gates": {
            "retry_attempts": 1,
            "max_retries": 3,
            "final_status": "passed",
            "total_duration_seconds": 67.9,
        },
    }
    assert attempts[0] == {
        "attempt": 1,
        "timestamp": "2024-01-15T10:30:00Z",
        "hook": "Stop",
        "duration_seconds": 23.5,
        "verdict": "blocked",
        "asked": "Run unit tests",
        "reason": "gate `Run unit tests` failed",
        "fed_back_bytes": 0,
        "results": [
            {
                "name": "Run unit tests",
                "passed": False,
                "duration_seconds": 23.5,
                "exit_code": 1,
                "output": TESTS,
                "status": "failed",
                "verdict": "block",
                "action": "BLOCK",
            }
        ],
    }
    assert attempts[1]["agent_fixes"] == FIXED
    assert attempts[1]["timestamp"] == "2024-01-15T10:31:15Z"
    assert [result["passed"] for result in attempts[1]["results"]] == [True] * 3


def test_the_summary_has_the_shape_of_the_seeds() -> None:
    assert summary(seeds_cycle()) == (
        "## Quality Gates - Iterative Fix Cycle\n\n"
        "**Final Status:** ✅ All gates passed after 2 attempts\n\n"
        "### Attempt 1 - Failed\n"
        "*Timestamp: 2024-01-15T10:30:00Z*\n\n"
        "| Gate | Status | Duration | Exit Code |\n"
        "|------|--------|----------|-----------|\n"
        "| Run unit tests | ❌ Fail | 23.5s | 1 |\n\n"
        "**Error Output:**\n"
        "```\n"
        "FAIL: TestUserCreation (0.00s)\n"
        "    Expected user.ID to be set\n"
        "```\n\n"
        "**Agent Action:** Fixed user ID initialization in CreateUser function\n\n"
        "---\n\n"
        "### Attempt 2 - Passed\n"
        "*Timestamp: 2024-01-15T10:31:15Z*\n\n"
        "| Gate | Status | Duration |\n"
        "|------|--------|----------|\n"
        "| Run unit tests | ✅ Pass | 24.1s |\n"
        "| Lint code | ✅ Pass | 8.2s |\n"
        "| Build check | ✅ Pass | 12.1s |\n\n"
        "**Total Duration:** 67.9 seconds\n"
        "**Total Attempts:** 2 of 4 allowed\n"
    )


@pytest.mark.parametrize(
    ("visits", "expected"),
    [
        ((visit("a", "passed"),), "passed"),
        ((), "passed"),
        ((visit("a", "failed", verdict=WARN, action="CONTINUE"),), "warned"),
        ((visit("a", "timed-out"), visit("b", "not-started")), "blocked"),
        ((visit("a", "not-started"),), "could-not-run"),
        ((visit("a", "failed", verdict=STOP, action="STOP"),), "stopped"),
        ((visit("a", "not-started", verdict=STOP, action="STOP"),), "could-not-run"),
    ],
)
def test_outcomes_without_a_policy(visits: tuple[Visit, ...], expected: str) -> None:
    assert attempt(*visits).verdict == expected


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_its_words(outcome: str) -> None:
    document = add_attempt(None, "r", attempt(visit("a", "failed"), verdict=outcome), 3)
    assert document["outcome"] == outcome
    assert document["quality_gates"]["final_status"] == OUTCOMES[outcome][0]
    final = summary(document).splitlines()[2]
    assert final.startswith("**Final Status:** ")
    assert "1 attempt" in final


def test_every_field_is_in_the_table_and_none_else() -> None:
    full = attempt(
        visit(
            "a",
            "killed",
            signal=9,
            exit_status=4,
            reason="r",
            output=b"x",
            dropped_bytes=5,
            changed_paths=("p",),
            restaged_paths=("p",),
            log_abs="/g/gitgates/runs/r/logs/a.log",
            excused="were there before",
            accepted=("12ab",),
            failures=(
                Failure("12ab", "t", "a.py", 1, 2, "R", "m", "note"),
                Failure("34cd", "a.py: wrong"),
            ),
            metrics={"coverage": 83.5},
            reused="Stop, 2 min ago",
            where="grpc://build.example.com:443",
            action_digest="ab/1",
            remote_failure="no worker",
            waited_s=1.5,
        )._replace(would="BLOCK", called_by="b", rescued_by="c"),
        tree="ab" * 20,
        session="s",
        agent="tester",
        agent_fixes="did it",
        notes=("n",),
        cannot_fix=(("a", "why"),),
        not_run=("b",),
    )
    document = add_attempt(add_attempt(None, "r", full, 3), "r", full, 3)
    last = document["quality_gates"]["attempts"][-1]
    document["headless"] = {"task": "do it"}
    for value, fields in (
        (document, RUN),
        (document["quality_gates"], CYCLE),
        (last, ATTEMPT),
        (last["results"][0], RESULT),
        (last["results"][0]["failures"][0], FAILURE),
    ):
        assert sorted(value) == sorted(name.rstrip("*") for name in fields)
    assert is_sound(json.loads(json.dumps(document)))
    assert last["results"][0]["log"] == "logs/a.log"


def test_what_the_agent_said_before_the_first_attempt_is_no_fix() -> None:
    one = attempt(visit("a", "failed"), agent_fixes="x" * 5000)
    document = add_attempt(add_attempt(None, "r", one, 3), "r", one, 3)
    first, second = document["quality_gates"]["attempts"]
    assert "agent_fixes" not in first
    assert second["agent_fixes"] == "x" * LONGEST_FIXES


def test_old_attempts_of_a_long_cycle_lose_their_output_and_failures_alone() -> None:
    document: dict[str, Any] | None = None
    for number in range(WITH_OUTPUT + 2):
        failures = (Failure(fingerprint=str(number), title="t"),)
        ended = visit("a", "failed", output=b"%d" % number, failures=failures)
        document = add_attempt(document, "r", attempt(ended), 3)
    assert document
    attempts = document["quality_gates"]["attempts"]
    assert [a["results"][0]["output"] for a in attempts[:3]] == ["", "", "2"]
    assert ["failures" in a["results"][0] for a in attempts[:3]] == [False, False, True]
    assert [a["attempt"] for a in attempts] == list(range(1, WITH_OUTPUT + 3))


def test_logs_of_another_run_are_found_from_this_one() -> None:
    there = visit("a", "failed", log_abs="/g/gitgates/runs/other/logs/a.log")
    document = add_attempt(None, "r", attempt(there), 0)
    assert document["quality_gates"]["attempts"][0]["results"][0]["log"] == "../other/logs/a.log"


HOSTILE = "a|b `x` <script>*x*\n# head [y](http://z) \x1b[31mred\u202e"


def test_nothing_from_outside_has_a_meaning_in_the_summary() -> None:
    output = b"\x1b]0;title\x07\x1b[31mred\x1b[0m\n````\n# no heading\n<b>\r\nlast\xff\x00\n"
    one = attempt(
        visit(HOSTILE, "failed", output=output, reason=HOSTILE),
        visit("b", "failed", output=b"x"),
        agent_fixes=HOSTILE,
        notes=(HOSTILE,),
        cannot_fix=((HOSTILE, HOSTILE),),
        not_run=(HOSTILE,),
    )
    document = add_attempt(add_attempt(None, "r", one, 3), "r", one, 3)
    text = summary(document)
    safe = r"a\|b `x` \<script\>\*x\* # head \[y\](http://z) red"
    assert f"| {safe} | ❌ Fail ({safe}) | 0.0s | 1 |" in text
    assert f"**Agent Action:** {safe}\n" in text
    assert f"**Note:** {safe}\n" in text
    assert f"**Cannot Fix:** {safe}: {safe}\n" in text
    assert f"**Not Run:** {safe}\n" in text
    fenced = "`````\nred\n````\n# no heading\n<b>\nlast\ufffd\n`````\n"
    assert f"**Error Output:** ({safe})\n{fenced}" in text
    assert not set(text) & set("\x1b\x07\x00\r\u202e")
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize("text", ["a`b", "``", "a ``b`` `", "`", "`a` `"])
def test_signs_without_a_partner_are_signs(text: str) -> None:
    document = add_attempt(None, "r", attempt(visit(text, "passed")), 0)
    assert f"| {text.replace('`', chr(92) + '`')} | ✅ Pass |" in summary(document)


def test_a_long_output_is_cut_in_the_summary() -> None:
    output = b"begin" + b"x" * 100_000 + b"end"
    one = attempt(visit("a", "failed", output=output, log_abs="/g/runs/r/logs/a.log"))
    text = summary(add_attempt(None, "r", one, 0))
    assert "[... 88008 characters left out; see logs/a.log ...]" in text
    assert "begin" in text
    assert "end\n```" in text
    assert len(text) < 13_000


def test_surrogates_do_not_get_into_json() -> None:
    one = attempt(visit("a\ud800", "failed"), root="/x\udcff", session="\ud800")
    document = add_attempt(None, "r", one, 0)
    json.dumps(document, ensure_ascii=False).encode()
    assert document["root"] == "/x\ufffd"


def test_an_attempt_is_added_to_a_document_of_version_1() -> None:
    document = {**seeds_cycle(), "version": 1}
    assert is_sound(document)
    again = add_attempt(document, "run-1", attempt(visit("a", "passed")), 3)
    assert (again["version"], again["quality_gates"]["retry_attempts"]) == (2, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"version": True},
        {"outcome": "fine"},
        {"quality_gates": []},
        {"quality_gates": {"attempts": []}},
        {"host": None},
    ],
)
def test_what_is_not_ours_is_not_added_to(change: dict[str, Any]) -> None:
    document = {**seeds_cycle(), **change}
    assert not is_sound(document)
    again = add_attempt(document, "r", attempt(visit("a", "passed")), 0)
    assert again["quality_gates"]["retry_attempts"] == 0


def test_numbers_that_json_does_not_have_are_not_sound() -> None:
    document = seeds_cycle()
    document["quality_gates"]["attempts"][0]["duration_seconds"] = float("inf")
    assert not is_sound(document)
