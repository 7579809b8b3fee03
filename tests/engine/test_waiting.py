"""Gates with resources: never two at once, and what they wait for does not count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.types import Config, Decision, Event, Gate, make_gate
from gitgates.engine.run.job import Deadline, RunOptions
from gitgates.proc.pool import Use
from gitgates.proc.resources import Resources, Wait

# Fails where another one runs at the same time.
ALONE = 'mkdir "$OUT/alone" && sleep 0.05 && rmdir "$OUT/alone" && echo "$PWD" >> "$OUT/ran"'


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    return str(tmp_path / "pool")


def run(repo: Repo, *gates: Gate, heard: Heard | None = None, **fields: Any) -> Decision:
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=())
    config: Config = config_of(gates, "manual", 4, strategy="collect")._replace(**fields)
    return run_gates(config, event, heard or Heard())


def claim(other: Resources) -> bool:
    """Take the resource for a gate elsewhere; return whether it was free."""
    return not isinstance(other.take(Use("t", "", "/other"), ("db",)), Wait)


def gate(name: str, command: str = "true", **fields: Any) -> Gate:
    return make_gate(name=name, command=command, **{"timeout_s": 20.0, **fields})


@pytest.mark.usefixtures("out", "folder")
def test_gates_of_one_run_take_turns_and_others_go_on(repo: Repo) -> None:
    both = [gate(name, ALONE, resources=("port:1",)) for name in "ab"]
    heard = Heard()
    decision = run(repo, *both, gate("c"), heard=heard)
    assert [result.status for result in results(decision)] == ["passed"] * 3
    assert heard.order == ["a", "c", "b"]


@pytest.mark.usefixtures("folder")
def test_a_count_lets_more_in(repo: Repo, out: Path) -> None:
    beside = 'touch "$OUT/at.$$"; until [ $(ls "$OUT" | grep -c "^at") -ge 2 ]; do sleep 0.01; done'
    both = [gate(name, beside, resources=("db",)) for name in "ab"]
    decision = run(repo, *both, resources=(("db", 2),))
    assert [result.status for result in results(decision)] == ["passed"] * 2
    assert len(list(out.iterdir())) == 2


def test_waiting_does_not_count_and_is_told(
    repo: Repo, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Resources({"GITGATES_POOL": folder}, {})
    assert claim(other)

    class Told(Heard):
        def waiting(self, gate: str, wait: Any) -> None:
            super().waiting(gate, wait)
            other.close()

    monkeypatch.setattr("gitgates.engine.run.run._PATIENCE_S", 0.4)  # longer than its limit
    heard = Told()
    (result,) = results(
        run(repo, gate("g", "sleep 0.1", timeout_s=0.3, resources=("db",)), heard=heard)
    )
    assert result.status == "passed"
    assert result.waited_s > 0.4
    assert heard.texts == ["g waits for `db` after `t` in /other, place 1"]


@pytest.mark.usefixtures("folder")
def test_what_a_gate_holds_the_gates_within_it_have(repo: Repo) -> None:
    repo.config(
        "[gates.inner]\ncommand = 'true'\nresources = ['db']\n"
        "[gates.more]\ncommand = 'true'\nresources = ['db', 'port']\n"
    )
    inner = [
        gate(name, f"gitgates run pre-push {name}", resources=("db",)) for name in ("inner", "more")
    ]
    passed, failed = results(run(repo, *inner))
    assert passed.status == "passed"
    assert b"it needs `port`, and runs within a gate that has only `db`" in failed.output


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("count", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_two_gates_on_one_port_never_overlap(repo: Repo, out: Path, count: int) -> None:
    repo.config(
        f"[gates.t]\ncommand = '''{ALONE}'''\nresources = ['port:5432']\n"
        "[hooks.manual]\ngates = ['t']\n"
    )
    repo.commit_all("begin")
    trees = [str(repo.path.parent / f"w{number}") for number in range(count)]
    for tree in trees:
        repo.git("worktree", "add", "-q", "--detach", tree)
    runs = [
        subprocess.Popen(
            ["gitgates", "run", "manual", "--format", "json"], cwd=tree, stdout=subprocess.PIPE
        )
        for tree in trees
    ]
    ends = [json.loads(process.communicate()[0]) for process in runs]
    assert [end["exit_status"] for end in ends] == [0] * count
    assert sorted((out / "ran").read_text().split()) == sorted(trees)


@pytest.mark.slow
def test_a_killed_run_leaves_the_resource_to_its_gate(repo: Repo, folder: str, out: Path) -> None:
    command = 'echo $$ > "$OUT/pid.new"; mv "$OUT/pid.new" "$OUT/pid"; sleep 60'
    repo.config(
        f"[gates.t]\ncommand = '{command}'\nresources = ['db']\n[hooks.manual]\ngates = ['t']\n"
    )
    killed = subprocess.Popen(["gitgates", "run", "-q", "manual"], cwd=repo.path)
    while not (out / "pid").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    other = Resources({"GITGATES_POOL": folder}, {})
    assert not claim(other)
    os.killpg(int((out / "pid").read_text()), signal.SIGKILL)
    while not claim(other):
        time.sleep(0.01)
    other.close()


@pytest.mark.parametrize("is_extended", [True, False])
def test_waiting_counts_only_where_a_host_waits(
    repo: Repo, folder: str, monkeypatch: pytest.MonkeyPatch, *, is_extended: bool
) -> None:
    other = Resources({"GITGATES_POOL": folder}, {})
    assert claim(other)

    class Told(Heard):
        def waiting(self, gate: str, wait: Any) -> None:
            super().waiting(gate, wait)
            other.close()

    monkeypatch.setattr("gitgates.engine.run.run._PATIENCE_S", 0.4)  # longer than all may take
    deadline = Deadline(time.monotonic() + 0.3, 0.3, is_extended=is_extended)
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=())
    config = config_of((gate("g", timeout_s=0.5, resources=("db",)),), "manual")
    options = RunOptions(deadline=deadline)
    (result,) = results(run_gates(config, event, Told(), options=options))
    assert result.status == ("passed" if is_extended else "not-run")
    waits = "it waits for `db` after `t` in /other, place 1"
    assert result.reason == ("" if is_extended else waits)
    other.close()
