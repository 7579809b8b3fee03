"""Gates that fail and then pass on the same content, and gates in quarantine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.types import ALLOW, BLOCK, WARN, Decision, Event, Gate, make_gate
from gitgates.engine.plan.walk import describe
from gitgates.engine.run.job import RunOptions

# Fails the first time, and says how often it has run.
ONCE = 'echo x >> "$OUT/runs"; echo "run $(wc -l < "$OUT/runs")"; [ $(wc -l < "$OUT/runs") -gt 1 ]'


def run(repo: Repo, *gates: Gate, heard: Heard | None = None, **fields: Any) -> Decision:
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=())
    return run_gates(config_of(gates, "manual", **fields), event, heard or Heard())


def gate(command: str, name: str = "t", **fields: Any) -> Gate:
    return make_gate(name=name, command=command, timeout_s=20.0, **fields)


def test_a_failure_that_passes_on_the_same_content_is_flaky(repo: Repo, out: Path) -> None:
    heard = Heard()
    decision = run(repo, gate(ONCE, retry=1, reuse=True), heard=heard)
    (result,) = results(decision)
    assert (result.status, result.output) == ("flaky", b"run 1\n")
    assert decision.verdict == WARN
    why = "failed (exit status 1), then passed on the same content"
    assert decision.reason == f"gate `t` is flaky ({why})"
    assert heard.texts == ["t: failed (exit status 1); it runs again"]
    assert Path(result.log_abs).read_text() == "run 1\n"
    (out / "runs").unlink()
    (again,) = results(run(repo, gate(ONCE, retry=1, reuse=True)))
    assert (again.status, again.origin.reused) == ("flaky", "")  # it was no pass


def test_a_reused_pass_is_flaky_where_the_gate_has_failed_before(repo: Repo) -> None:
    config = config_of((gate("true", reuse=True),), "manual")
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=())
    run_gates(config, event, Heard())
    found = []
    for failed in ({}, {"t": "failed"}, {"other": "failed"}):
        options = RunOptions(failed=failed)
        found += results(run_gates(config, event, Heard(), options=options))
    assert all(result.origin.reused for result in found)
    assert [result.status for result in found] == ["passed", "flaky", "passed"]
    assert found[1].reason == "failed before, then passed on the same content"


def test_a_failure_that_stays_is_one(repo: Repo, out: Path) -> None:
    decision = run(repo, gate('echo x >> "$OUT/runs"; exit 3', retry=2))
    assert (decision.verdict, describe(results(decision)[0])) == (
        BLOCK,
        "failed (exit status 3; none of 3 runs passed)",
    )
    assert (out / "runs").read_text() == "x\nx\nx\n"


def test_nothing_checked_after_a_failure_is_no_pass(repo: Repo, out: Path) -> None:
    command = f'{ONCE} && echo "No tests found, exiting with code 0"'
    (result,) = results(run(repo, gate(command, retry=1, failures="jest")))
    assert describe(result) == "failed (exit status 1; none of 2 runs passed)"
    assert out.exists()


@pytest.mark.parametrize("retry", [None, 0])
def test_without_retry_it_runs_once(repo: Repo, out: Path, retry: int | None) -> None:
    assert run(repo, gate(ONCE, retry=retry)).verdict == BLOCK
    assert (out / "runs").read_text() == "x\n"


def test_what_has_changed_files_does_not_run_again(repo: Repo, out: Path) -> None:
    repo.write("a.txt", "a\n")
    repo.git("add", ".")
    command = 'echo x >> "$OUT/runs"; echo b >> a.txt; exit 1'
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=("a.txt",))
    gates = (gate(command, files=("*",), retry=1, writes=True),)
    assert run_gates(config_of(gates, "manual"), event, Heard()).verdict == BLOCK
    assert (out / "runs").read_text() == "x\n"


def test_what_comes_after_a_flaky_gate_runs(repo: Repo, out: Path) -> None:
    chained = gate(ONCE, retry=1, on_pass="next"), gate("exit 1", name="next")
    config = config_of(chained, "manual")
    hook = config.hooks[0]._replace(gates=("t",))
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=())
    decision = run_gates(config._replace(hooks=(hook,)), event, Heard())
    assert [result.status for result in results(decision)] == ["flaky", "failed"]
    assert decision.verdict == BLOCK
    assert (out / "runs").read_text() == "x\nx\n"


def test_in_quarantine_a_failure_warns_and_after_it_blocks(repo: Repo) -> None:
    until = {"quarantine_until": "9999-12-31", "on_fail": "STOP"}
    decision = run(repo, gate("exit 1", **until), gate("true", name="u", **until))
    text = "gate `t` failed (exit status 1; in quarantine until 9999-12-31)"
    assert (decision.verdict, decision.reason) == (WARN, text)
    decision = run(repo, gate("exit 1", quarantine_until="2001-01-31"))
    text = "gate `t` failed (exit status 1; its quarantine ended on 2001-01-31)"
    assert (decision.verdict, decision.reason) == (BLOCK, text)
    assert run(repo, gate("true", **until)).verdict == ALLOW
