"""Which gates of a run start when: weights, order, processes of one gate side by side."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.types import BLOCK, WARN, Config, Decision, Event, Gate, Step, make_gate
from gitgates.engine.plan.walk import CANCELLED
from gitgates.engine.run.admission import Admissions
from gitgates.engine.run.job import RunOptions
from gitgates.git.repo import find_repo
from gitgates.proc.pool import Pool
from gitgates.store.proofs import note_durations

# Fails where another gate runs at the same time.
ALONE = 'mkdir "$OUT/alone" && sleep 0.02 && rmdir "$OUT/alone"'
# Passes where as many others do.
BESIDE = 'touch "$OUT/at.$$"; until [ $(ls "$OUT" | grep -c "^at") -ge {} ]; do sleep 0.01; done'
PATHS = tuple(f"{number:02}" for number in range(16))


pytestmark = pytest.mark.usefixtures("out")


def run(
    repo: Repo, *gates: Gate, jobs: int = 2, listener: Heard | None = None, **fields: Any
) -> Decision:
    """Run gates as `gitgates run` does, with `collect`."""
    config = config_of(gates, "manual", jobs, strategy="collect", **fields)
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=PATHS)
    return run_gates(config, event, listener or Heard())


def statuses(decision: Decision) -> list[str]:
    return [result.status for result in results(decision)]


def gate(name: str, command: str = "true", **fields: Any) -> Gate:
    return make_gate(name=name, command=command, timeout_s=20.0, **fields)


def test_gates_without_weight_run_side_by_side(repo: Repo) -> None:
    both = gate("a", BESIDE.format(2)), gate("b", BESIDE.format(2))
    assert statuses(run(repo, *both)) == ["passed", "passed"]


def test_no_more_weight_than_slots(repo: Repo) -> None:
    heavy = gate("a", ALONE, weight=2), gate("b", ALONE), gate("c", ALONE, weight=99)
    assert statuses(run(repo, *heavy)) == ["passed"] * 3


def test_no_later_gate_gets_ahead_of_a_heavy_one(repo: Repo) -> None:
    listener = Heard()
    gates = gate("a", "sleep 0.1"), gate("heavy", weight=2), gate("c"), gate("d")
    run(repo, *gates, listener=listener)
    assert listener.order == ["a", "heavy", "c", "d"]


def test_the_longest_goes_first_and_is_shown_in_its_place(repo: Repo) -> None:
    note_durations(str(repo.path / ".git/gitgates"), {"b": 3.0, "d": 60.0})
    listener = Heard()
    gates = [gate(name) for name in "abcd"]
    decision = run(repo, *gates, jobs=1, listener=listener)
    assert listener.order == ["d", "b", "a", "c"]
    assert [result.gate for result in results(decision)] == ["a", "b", "c", "d"]


@pytest.mark.slow
def test_fail_fast_ends_what_runs(repo: Repo) -> None:
    waits = gate("waits", 'echo begun; touch "$OUT/up"; sleep 60', on_fail="STOP")
    fails = gate("fails", 'until [ -e "$OUT/up" ]; do sleep 0.01; done; exit 3')
    began = time.monotonic()
    decision = run(repo, waits, fails, gate("later"), fail_fast=True)
    assert time.monotonic() - began < 20.0
    first, second = results(decision)
    assert (first.status, first.reason, first.output) == ("not-run", CANCELLED, b"begun\n")
    assert (second.status, decision.verdict) == ("failed", BLOCK)
    assert (decision.not_run, decision.reason) == (
        ("later",),
        "gate `fails` failed (exit status 3)",
    )


@pytest.mark.slow
def test_what_is_cancelled_is_not_what_failed(repo: Repo) -> None:
    """Neither in the reason, nor for a server of CI, nor in the list of runs."""
    until_up = 'until [ -e "$OUT/up" ]; do sleep 0.01; done'
    config = f"""
        jobs = 4
        gates.waits.command = "sleep 60"
        gates.first = {{command = "false", on_fail = "saves"}}
        gates.saves.command = 'touch "$OUT/up"; sleep 60'
        gates.fails = {{command = '{until_up}; rm "$OUT/up"; exit 3', on_fail = "%s"}}
        [hooks.manual]
        gates = ["waits", "first", "fails"]
        strategy = "collect"
        fail_fast = true
        """
    for action in ("BLOCK", "STOP"):
        repo.write("gitgates.toml", config.replace("%s", action))
        done = repo.gitgates("run", "--junit", "report.xml", "--format", "json")
        document = json.loads(done.stdout)
        ended = {gate["name"]: gate["status"] for gate in document["results"]}
        cancelled = {"waits": "not-run", "saves": "not-run"}
        assert ended == {**cancelled, "first": "failed", "fails": "failed"}
        assert document["reason"] == "gate `fails` failed (exit status 3)"
        assert (repo.path / "report.xml").read_text().count("<skipped ") == 2
        listed = json.loads(repo.gitgates("runs", "list", "--format", "json").stdout)
        assert listed["runs"][0]["failed"] == ["first", "fails"]


def test_a_warning_ends_nothing(repo: Repo) -> None:
    decision = run(repo, gate("a", "false", on_fail="CONTINUE"), gate("b"), fail_fast=True)
    assert (decision.verdict, statuses(decision)) == (WARN, ["failed", "passed"])


def test_a_gate_waits_for_another_one(repo: Repo) -> None:
    late = gate("late", 'test -e "$OUT/done"', after=("first",))
    first = gate("first", 'sleep 0.05; touch "$OUT/done"; false')
    assert statuses(run(repo, late, first)) == ["failed", "passed"]


def split(command: str, **fields: Any) -> Gate:
    return gate("split", command, pass_files=True, parallel=True, **fields)


def test_paths_are_split_over_the_slots(repo: Repo) -> None:
    (result,) = results(run(repo, split(BESIDE.format(2) + '; echo "$@"')))
    assert (result.status, result.output.decode().splitlines()) == (
        "passed",
        [" ".join(PATHS[:8]), " ".join(PATHS[8:])],
    )


def test_few_paths_are_not_split(repo: Repo) -> None:
    (result,) = results(run(repo, split('echo "$@"', files=("0[0-6]",))))
    assert result.output.decode().splitlines() == [" ".join(PATHS[:7])]


def test_output_is_in_order_and_all_of_it_in_the_log(repo: Repo, out: Path) -> None:
    first = 'until [ -e "$OUT/up" ]; do sleep 0.01; done; seq 100000'
    second = 'seq 200000 300000; touch "$OUT/up"; exit 4'
    (result,) = results(run(repo, split(f'case "$1" in 00) {first};; *) {second};; esac')))
    assert (result.status, result.exit_status) == ("failed", 4)
    log = Path(result.log_abs)
    numbers = [*map(int, log.read_text().split())]
    assert numbers == [*range(1, 100_001), *range(200_000, 300_001)]
    assert os.listdir(log.parent) == [log.name]
    assert (out / "up").exists()


def test_more_commands_than_slots(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.engine.run.job.argument_limit", lambda _env: 80)
    (result,) = results(run(repo, split('echo "$1"; test "$1" != 00')))
    assert result.status == "failed"
    assert result.output.decode().split() == list(PATHS)  # all ran, though the first failed


@pytest.mark.slow
def test_a_timeout_ends_all_processes_of_a_gate(repo: Repo) -> None:
    limited = split('echo "$1"; sleep 60').changed(timeout_s=1.5)  # time enough to write
    (result,) = results(run(repo, limited))
    assert (result.status, result.output) == ("timed-out", b"00\n08\n")


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    (tmp_path / "pool/queue").mkdir(parents=True)
    return str(tmp_path / "pool")


def test_a_split_gate_takes_only_free_slots(repo: Repo, pool: str) -> None:
    other = Pool(pool, 2, is_urgent=False)
    held = other.take(1)
    assert held
    (result,) = results(run(repo, split('echo "$@"')))
    assert result.output.decode().splitlines() == [" ".join(PATHS)]


def test_a_slot_that_no_gate_needs_is_free_for_others(repo: Repo, pool: str) -> None:
    """While one gate still runs, the slot of another one that has ended is not kept."""
    take = (
        "import sys, time; from gitgates.proc.pool import Pool\n"
        f"pool = Pool({pool!r}, 2, is_urgent=False)\n"
        "while pool.take(1) is None: time.sleep(0.01)"
    )
    takes = gate("takes", f'until [ -e "$OUT/up" ]; do sleep 0.01; done; python -c "{take}"')
    assert statuses(run(repo, takes, gate("quick", 'touch "$OUT/up"'))) == ["passed", "passed"]


def test_no_place_is_kept_for_a_gate_that_cannot_start(repo: Repo, pool: str) -> None:
    """Such as one that writes, while a gate of another run is in its worktree."""
    assert Pool(pool, 1, is_urgent=False).take(1)
    there = find_repo(str(repo.path), dict(os.environ))
    admissions = Admissions(Config(jobs=1), there, None, print, options=RunOptions())
    for is_asked in (True, False, True):
        if is_asked:
            assert admissions.ask(Step(gate=gate("a")), lambda _: [], 1) is None
        admissions.settle()
        assert len(os.listdir(f"{pool}/queue")) == is_asked
    admissions.close()


def test_gates_run_where_the_pool_is_gone(repo: Repo, pool: str) -> None:
    """Something that cleans up /tmp may remove it under a run."""
    listener = Heard()
    first = gate("first", f"rm -r {pool}")
    assert statuses(run(repo, first, gate("second"), jobs=1, listener=listener)) == ["passed"] * 2
    assert listener.order == ["first", "second"]
    (said,) = listener.texts
    assert said.startswith("gates do not wait for other runs' gates: ")
