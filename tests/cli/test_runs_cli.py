"""`gitgates runs`: what is listed, shown, pruned and counted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from artifact_support import FAILED, PASSED, Place, attempt, save, visit
from conftest import Repo

from gitgates.core.types import STOP
from gitgates.report.artifacts import add_headless
from gitgates.report.result import AttemptReport, add_attempt
from gitgates.report.statistics import COLUMNS, gate_stats, headless_stats
from gitgates.store import runs
from gitgates.store.log import write_ledger
from gitgates.store.proofs import Proof, append

PROOF = Proof(
    gate="a", content="a" * 40, status="passed", time_s=5.0, hook="Stop", definition="d", key="k"
)


def state(repo: Repo) -> str:
    return str(repo.path / ".git/gitgates")


def cycle(repo: Repo, *attempts: AttemptReport, max_retries: int = 3) -> str:
    """Save the attempts of one cycle; return the run's name."""
    run_abs = runs.new_run(state(repo))
    place = Place(
        state_abs=state(repo), run_abs=run_abs, root_abs=str(repo.path), max_retries=max_retries
    )
    for one in attempts:
        assert save(place, one) == ()
    return os.path.basename(run_abs)


def lines(repo: Repo, *args: str) -> list[str]:
    done = repo.gitgates(*args)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_the_list_has_the_newest_first_and_says_what_came_of_each(repo: Repo) -> None:
    fixed = cycle(repo, FAILED, PASSED)
    stop = visit("danger\x1b[31m", "failed", verdict=STOP, action="STOP")
    stopped = cycle(repo, attempt(stop, visit("b", "skipped")))
    logs = os.path.basename(runs.new_run(state(repo)))
    Path(state(repo), "runs", logs, "logs").mkdir(parents=True)
    torn = cycle(repo, FAILED)
    Path(state(repo), "runs", torn, "result.json").write_text("{")
    expected = [
        f"{'run':<{len(fixed)}}  host    hook  attempts   time  result",
        f"{torn}                                 logs only",
        f"{logs}                                 logs only",
        f"{stopped}  claude  Stop         1  0.0 s  stopped: danger",
        f"{fixed}  claude  Stop         2  0.0 s  passed",
    ]
    assert lines(repo, "runs") == expected
    assert lines(repo, "runs", "list") == expected
    assert lines(repo, "runs", "list", "--limit", "3") == expected[:4]
    document = json.loads("".join(lines(repo, "runs", "list", "--format", "json", "--limit", "4")))
    assert [run["outcome"] for run in document["runs"]] == [None, None, "stopped", "passed"]
    assert document["runs"][3] == {
        "execution_id": fixed,
        "outcome": "passed",
        "fixed": False,
        "host": "claude",
        "hook": "Stop",
        "timestamp": "2024-01-15T10:30:00Z",
        "attempts": 2,
        "total_duration_seconds": 0.0,
        "failed": [],
    }


def test_a_run_whose_gates_passed_later_is_not_listed_as_blocked(repo: Repo) -> None:
    def results() -> list[str]:
        return [line.partition("0.0 s  ")[2] for line in lines(repo, "runs")[1:]]

    cycle(repo, attempt(visit("a", "failed"), visit("b", "failed")))
    cycle(repo, FAILED)
    passed = PROOF._replace(time_s=time.time() + 1)  # as a commit leaves it, which keeps no run
    append(state(repo), (passed._replace(root_abs="/another/worktree"),))
    assert results() == ["blocked: a", "blocked: a, b"]
    append(state(repo), (passed._replace(root_abs=str(repo.path)),))
    assert results() == ["fixed: a", "blocked: a, b"]
    cycle(repo, attempt(visit("b", "passed")))
    assert results() == ["passed", "fixed: a", "fixed: a, b"]
    cycle(repo, attempt(visit("b", "failed")))
    assert results() == ["blocked: b", "passed", "fixed: a", "fixed: a, b"]
    listed = json.loads("".join(lines(repo, "runs", "list", "--format", "json")))["runs"]
    assert [run["fixed"] for run in listed] == [False, False, True, True]


def test_where_nothing_is_kept_that_is_said(repo: Repo) -> None:
    assert lines(repo, "runs") == ["no runs found"]
    assert lines(repo, "runs", "stats") == ["no runs with results found"]
    assert lines(repo, "runs", "prune") == ["removed 0 runs, 0 left"]
    done = repo.gitgates("runs", "show", "latest")
    assert (done.returncode, done.stderr) == (
        64,
        b"gitgates: no runs found\n  To start one: gitgates run\n",
    )


def test_a_run_is_shown_as_it_is_written(repo: Repo) -> None:
    first, second = cycle(repo, FAILED), cycle(repo, PASSED)
    Path(state(repo), "runs", "99990101T000000Z-1").mkdir()  # has no results
    for name, run in ((first, first), ("latest", second), (second[:22], second)):
        folder = Path(state(repo), "runs", run)
        assert repo.gitgates("runs", "show", name).stdout == (folder / "summary.md").read_bytes()
        shown = repo.gitgates("runs", "show", name, "--format", "json").stdout
        assert shown == (folder / "result.json").read_bytes()
    newest = f"gitgates: {second} is the newest run with results; for 1 newer run without"
    assert newest in repo.gitgates("runs", "show", "latest").stderr.decode()
    assert repo.gitgates("runs", "show", second).stderr == b""


def test_a_run_that_is_not_there_names_what_there_is(repo: Repo) -> None:
    first, second = cycle(repo, FAILED), cycle(repo, PASSED)
    Path(state(repo), "runs", "99990101T000000Z-1").mkdir()
    wrong = "x" + first
    assert repo.gitgates("runs", "show", wrong).stderr.decode() == (
        f"gitgates: no run `{wrong}`\n  Newest: 99990101T000000Z-1, {second}, {first}.\n"
    )
    done = repo.gitgates("runs", "show", first[:4])
    assert (done.returncode, done.stderr.decode()) == (
        64,
        f"gitgates: `{first[:4]}` is an ambiguous prefix of 2 runs\n  Newest: {second}, {first}.\n",
    )
    assert b"99990101T000000Z-1 has no results" in repo.gitgates("runs", "show", "9999").stderr
    assert repo.gitgates("runs", "show", "../..").returncode == 64
    assert repo.gitgates("runs", "show", "").returncode == 64


def test_runs_are_pruned_by_hand_and_as_configured(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)  # runs of a process that lives stay
    repo.config("keep_runs = 2\n")
    names = [cycle(repo, PASSED) for _ in range(4)]
    assert lines(repo, "runs", "prune", "--keep", "3") == ["removed 1 run, 3 left"]
    assert lines(repo, "runs", "prune") == ["removed 1 run, 2 left"]
    assert runs.run_ids(state(repo)) == names[2:]
    open_one = cycle(repo, FAILED)
    assert lines(repo, "runs", "prune", "--keep", "0") == ["removed 2 runs, 1 left"]
    assert runs.run_ids(state(repo)) == [open_one]


def test_an_unknown_verb_is_a_usage_error(repo: Repo) -> None:
    assert repo.gitgates("runs", "lst").returncode == 64


# What is counted


def document(*attempts: AttemptReport, max_retries: int = 3) -> dict[str, Any]:
    made: dict[str, Any] | None = None
    for one in attempts:
        made = add_attempt(made, "r", one, max_retries)
    assert made
    return made


def stats_of(*documents: dict[str, Any], skipped: tuple[str, ...] = ()) -> dict[str, Any]:
    return {gate["name"]: SimpleNamespace(**gate) for gate in gate_stats(documents, skipped)}


def test_time_is_counted_of_gates_that_ran() -> None:
    one = attempt(visit("a", "passed", duration_s=1.0), visit("b", "passed", duration_s=2.0))
    two = attempt(visit("a", "passed", duration_s=3.0), visit("b", "skipped"))
    found = stats_of(document(one), document(two))
    assert (found["a"].runs, found["a"].total_seconds, found["a"].median_seconds) == (2, 4.0, 2.0)
    assert (found["b"].runs, found["b"].total_seconds, found["b"].median_seconds) == (1, 2.0, 2.0)
    assert list(found) == ["a", "b"]


def test_a_gate_changed_the_outcome_where_its_own_action_decided() -> None:
    led_on = visit("caller", "failed", action="last", exit_status=1)
    one = attempt(led_on, visit("last", "failed"), visit("warns", "failed", verdict=1, action="x"))
    found = stats_of(document(one, one))
    assert {name: gate.changed for name, gate in found.items()} == {
        "caller": 0,
        "last": 2,
        "warns": 0,
    }


def test_bytes_are_shared_out_by_the_length_of_the_outputs() -> None:
    short, long = visit("a", "failed", output=b"x"), visit("b", "failed", output=b"xxx")
    silent = attempt(visit("a", "failed"), visit("b", "failed"), fed_back_bytes=10)
    found = stats_of(document(attempt(short, long, visit("c", "passed"), fed_back_bytes=400)))
    assert [found[name].fed_back_bytes for name in "abc"] == [100, 300, 0]
    found = stats_of(document(silent))
    assert [found[name].fed_back_bytes for name in "ab"] == [5, 5]


def test_what_was_fixed_and_how_soon() -> None:
    never = document(FAILED, FAILED)
    later = document(FAILED, FAILED, PASSED)
    at_once = document(PASSED)
    broke_it = document(PASSED, FAILED)
    found = stats_of(never, later, at_once, broke_it)["a"]
    assert found.fix_rate == round(1 / 3, 3)
    assert found.attempts_to_pass == round((3 + 1 + 1) / 3, 2)
    by_hand = stats_of(document(FAILED, max_retries=0), document(PASSED, max_retries=0))["a"]
    assert (by_hand.fix_rate, by_hand.attempts_to_pass) == (None, None)


def test_a_gate_flaps_that_ends_otherwise_on_one_snapshot() -> None:
    failed = PROOF._replace(status="failed")

    def flaps(*proofs: Proof) -> list[str]:
        (gate,) = gate_stats([document(FAILED)], (), proofs)
        return list(gate["flaps"])

    assert flaps(failed, PROOF._replace(content="b" * 40), PROOF) == [PROOF.content]
    assert flaps(failed, PROOF._replace(hook="SubagentStop")) == []
    assert flaps(failed, PROOF._replace(definition="other")) == []
    assert flaps(failed, PROOF._replace(base="other")) == []  # it may have been given other paths
    assert flaps(failed, PROOF._replace(content="b" * 40)) == []
    assert flaps(failed, PROOF._replace(gate="z"), PROOF._replace(gate="z")) == []


def test_a_failure_that_needed_no_change_is_a_false_positive() -> None:
    tree, other = "a" * 40, "b" * 40
    failed, passed = FAILED._replace(tree=tree), PASSED._replace(tree=tree)
    found = stats_of(document(failed, passed), document(failed, failed, passed))
    assert found["a"].false_positives == 2
    changed = document(failed, PASSED._replace(tree=other), passed)
    not_known = document(FAILED, PASSED)
    both = visit("a", "failed"), visit("a", "passed")
    again_at_once = document(attempt(*both, tree=tree), attempt(visit("b", "passed"), tree=tree))
    assert stats_of(changed, not_known, again_at_once)["a"].false_positives == 0
    assert stats_of(document(failed), document(passed))["a"].false_positives == 0  # two runs


def headless(*attempts: AttemptReport, status: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
    return {**document(*attempts), "headless": {"status": status, "turns": turns}}


def test_a_flaky_run_is_counted_and_is_no_failure_of_the_agents() -> None:
    found = stats_of(document(FAILED, attempt(visit("a", "flaky", duration_s=1.0))))
    assert (found["a"].flaky, found["a"].runs, found["a"].fix_rate) == (1, 2, 1.0)


def test_what_came_of_headless_runs() -> None:
    long = PASSED._replace(duration_s=30.0)
    turn = {"attempt": 1, "seconds": 10.0}
    runs = [
        headless(PASSED, status="passed", turns=[{**turn, "tokens": 1000}]),
        headless(FAILED, FAILED, long, status="passed", turns=[{**turn, "tokens": 500}] * 3),
        headless(FAILED, PASSED, status="passed", turns=[turn, turn]),
        headless(FAILED, FAILED, status="failed", turns=[turn, turn]),
        headless(FAILED, PASSED, status="failed", turns=[turn, turn]),  # left to a person
        headless(attempt(verdict="could-not-run"), status="failed", turns=[turn]),
        document(FAILED, PASSED),  # of an agent that a person watches
    ]
    assert headless_stats(runs) == {
        "runs": 6,
        "passed": 3,
        "failed_at_first": 4,
        "fixed": 2,
        "fix_rate": 0.5,
        "attempts_to_pass": 2,
        "seconds_to_pass": 20.0,
        "tokens_to_pass": 1250,
    }
    assert set(headless_stats([document(FAILED)]).values()) == {0, None}


def test_overrides_are_skips_and_what_an_agent_cannot_fix() -> None:
    gave_up = FAILED._replace(cannot_fix=(("a", "no network"),), verdict="cannot-fix")
    found = stats_of(document(FAILED, gave_up), skipped=("a", "gone"))
    assert (found["a"].overrides, found["gone"].overrides, found["gone"].runs) == (2, 1, 0)


def test_every_number_has_its_column_and_its_words(repo: Repo) -> None:
    assert [*COLUMNS] == [*gate_stats((), ["a"])[0]][1:]
    said = " ".join(repo.gitgates("runs", "stats", "--help").stdout.decode().split())
    for head, _form, meaning in COLUMNS.values():
        assert f"{head} {' '.join(meaning.split())}" in said


def test_the_table_of_gates(repo: Repo) -> None:
    tree = "a" * 40
    cycle(repo, FAILED._replace(fed_back_bytes=7, tree=tree), PASSED._replace(tree=tree))
    append(state(repo), [PROOF._replace(status="failed"), PROOF])
    skip: dict[str, object] = {"hook": "pre-commit", "gates": ["a", "z"], "root": str(repo.path)}
    write_ledger(state(repo), "skip", skip)
    write_ledger(state(repo), "skip", {**skip, "root": "/elsewhere"})
    write_ledger(state(repo), "other", skip)
    with Path(state(repo), "ledger.jsonl").open("a") as file:
        file.write('{"torn\n[]\n')
    shown = [line.split() for line in lines(repo, "runs", "stats")]
    heads = (
        "gate runs unchecked flaky total median changed overridden fed back fixed attempts false "
        "flaps"
    )
    assert shown == [
        heads.split(),
        [
            "a",
            "2",
            "0",
            "0",
            "0.0",
            "s",
            "0.0",
            "s",
            "1",
            "1",
            "7",
            "B",
            "(100%)",
            "100%",
            "2.0",
            "1",
            "1",
        ],
        ["z", "0", "0", "0", "0.0", "s", "-", "0", "1", "0", "B", "(0%)", "-", "-", "0", "0"],
        ["flaps:", "a", "on", tree],
        ["of", "1", "run", "with", "results"],
    ]
    found = json.loads("".join(lines(repo, "runs", "stats", "--format", "json")))
    assert found["runs"] == 1
    assert found["gates"][0] == {
        "name": "a",
        "runs": 2,
        "unchecked": 0,
        "flaky": 0,
        "total_seconds": 0.0,
        "median_seconds": 0.0,
        "changed": 1,
        "overrides": 1,
        "fed_back_bytes": 7,
        "fix_rate": 1.0,
        "attempts_to_pass": 2.0,
        "false_positives": 1,
        "flaps": [tree],
    }


def test_a_skip_before_the_oldest_kept_run_is_not_counted(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "2020-01-01T00:00:00Z")
    write_ledger(state(repo), "skip", {"gates": ["old"], "root": str(repo.path)})
    monkeypatch.undo()
    cycle(repo, PASSED)
    assert [line.split()[0] for line in lines(repo, "runs", "stats")] == ["gate", "a", "of"]


def test_hostile_names_have_no_effect_on_the_terminal(repo: Repo) -> None:
    name = "x\x1b]0;t\x07\n\u202ey"
    cycle(repo, attempt(visit(name, "failed", output=b"\x1b[2J")))
    for args in ((), ("show", "latest"), ("stats",)):
        shown = repo.gitgates("runs", *args).stdout.decode()
        assert "x y" in shown
        assert not set(shown) & set("\x1b\x07\u202e")


def test_headless_runs_and_numbers_over_time(repo: Repo) -> None:
    run_abs = Path(state(repo), "runs", cycle(repo, FAILED, PASSED))
    turns = [{"attempt": number, "seconds": 10.5, "tokens": 21_000} for number in (1, 2)]
    facts = {"task": "mend it", "status": "passed", "outcome": "all gates passed", "turns": turns}
    for time_s, number in (3.0, 79), (2.0, 81.5), (4.0, 90), (1.0, 80):
        numbers = {"cover": number, "x\x1b": 7}
        append(state(repo), [PROOF._replace(time_s=time_s, numbers=numbers)])
    append(state(repo), [PROOF._replace(gate="another", numbers={"cover": 0.5})])
    add_headless(
        str(run_abs), facts, shared_state_abs=state(repo), artifacts_dir="", root_abs=str(repo.path)
    )
    assert lines(repo, "runs", "stats")[2:] == [
        "of 1 run with results",
        "",
        "headless runs       1",
        "passed              1",
        "fixed by the agent  1 of 1 that failed at first (100%)",
        "attempts to pass    2",
        "time to pass        21.0 s",
        "tokens to pass      42,000",
        "",
        "gate     metric  number  first  least  most  last",
        "a        cover        4     80     79    90    90  ▂▃▁█",
        "a        x            4      7      7     7     7  ▄▄▄▄",
        "another  cover        1    0.5    0.5   0.5   0.5  ▄",
    ]
    found = json.loads("".join(lines(repo, "runs", "stats", "--format", "json")))
    assert found["headless"]["fix_rate"] == 1.0
    [cover, _x, _another] = found["metrics"]
    assert (cover["gate"], cover["metric"]) == ("a", "cover")
    assert [one["value"] for one in cover["values"]] == [80, 81.5, 79, 90]
    assert cover["values"][0] == {
        "time": "1970-01-01T00:00:01Z",
        "commit": "",
        "tree": PROOF.content,
        "value": 80,
    }
    page = (run_abs / "report.html").read_text()
    assert ">a: cover</h2>" in page
    assert "4 runs: from 80 to 90, least 79, most 90" in page
    assert "another: cover" not in page


@pytest.mark.parametrize("name", ["summary.md", "result.json"])
@pytest.mark.parametrize("how", ["folder", "link", "pipe"])
def test_results_that_are_no_file(repo: Repo, name: str, how: str) -> None:
    run_id = cycle(repo, FAILED)
    path = Path(state(repo)) / "runs" / run_id / name
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("/etc/passwd")
    else:
        os.mkfifo(path)
    fmt = "json" if name == "result.json" else "text"
    done = repo.gitgates("runs", "show", run_id, "--format", fmt)
    assert done.returncode == 73
    assert b"cannot be read" in done.stderr
    assert b"Traceback" not in done.stderr
    assert repo.gitgates("runs").returncode == 0


def test_a_number_beyond_measure_is_damage(repo: Repo) -> None:
    run_id = cycle(repo, FAILED)
    path = Path(state(repo)) / "runs" / run_id / "result.json"
    document = json.loads(path.read_text())
    document["quality_gates"]["attempts"][0]["fed_back_bytes"] = 10**400
    path.write_text(json.dumps(document))
    assert lines(repo, "runs", "stats") == ["no runs with results found"]
