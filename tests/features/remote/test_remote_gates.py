"""Gates that may run on a server: which of them go there, when, and what their ends mean here."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.types import (
    BLOCK,
    Command,
    Config,
    Decision,
    Event,
    Gate,
    GateResult,
    Step,
    make_gate,
)
from gitgates.features.remote import gates as remote_gates
from gitgates.features.remote.gates import RemoteGates, declared_env
from gitgates.git.repo import find_repo
from gitgates.proc.pool import Pool, open_pool, release
from gitgates.store.proofs import digest, durations, note_durations, read_all, remote_name

PLACE = "grpc://127.0.0.1:1"
TABLE = {"execution": PLACE, "jobs": 4, "fallback": "local", "instance": "", "platform": ()}

pytestmark = pytest.mark.slow  # a Python for each gate


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch, out: Path, tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[2])
    start = (
        f"import sys; sys.path[:0] = [sys.argv[1], {tests!r}]; import remote_child as it; it.main()"
    )
    monkeypatch.setattr("gitgates.proc.helper._START", start)
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    monkeypatch.setenv("OUT", str(out))


def gate(name: str, end: str = "passed", command: str = "true", **fields: Any) -> Gate:
    """Return a gate that may run there, ends there in some way, and has a command for here."""
    env = (("END", end), ("OUT", os.environ["OUT"]), *fields.pop("env", ()))
    return make_gate(
        name=name, command=command, env=env, **{"timeout_s": 20.0, "remote": True, **fields}
    )


BUSY = make_gate(name="busy", command="sleep 0.5", timeout_s=20.0)  # on the only slot here
HERE = 'echo "$END" >>"$OUT/here"; echo ran here'


def run(
    repo: Repo, *gates: Gate, heard: Heard | None = None, room: int = 1, **table: Any
) -> dict[str, GateResult]:
    """Run gates, as `gitgates run` does, and return their results by name."""
    config = config_of(gates, "manual", room, strategy="collect")
    paths = tuple(table.pop("paths", ()))
    event = Event(host="manual", name="manual", root_abs=str(repo.path), paths=paths)
    config = Config(**{**config._asdict(), "tables": {"remote": TABLE | table}})
    decision: Decision = run_gates(config, event, heard or Heard())
    return {result.gate: result for result in results(decision)}


def went(out: Path) -> list[str]:
    """Return the gates that went there, in order."""
    there = out / "there"
    return [line.split()[0] for line in there.read_text().splitlines()] if there.exists() else []


def test_where_there_is_room_all_run_here(repo: Repo, out: Path) -> None:
    ended = run(repo, gate("a"), gate("b"), room=2)
    assert [result.origin.where for result in ended.values()] == ["", ""]
    assert went(out) == []


def test_on_demand_they_run_there_first(
    repo: Repo, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_REMOTE", "1")
    stays = make_gate(name="stays", command="true")
    ended = run(repo, gate("a"), gate("b"), gate("c"), stays, room=2, jobs=1)
    assert [result.origin.where for result in ended.values()] == [PLACE, PLACE, PLACE, ""]
    down = run(repo, gate("d", "down", HERE), gate("e", command=HERE), room=2, jobs=1)
    assert sorted(went(out)) == ["a", "b", "c", "d"]
    assert [result.origin.where for result in down.values()] == ["", ""]
    assert not run(repo, gate("f"), room=2, jobs=0)["f"].origin.where
    monkeypatch.setenv("GITGATES_REMOTE", "0")
    assert not run(repo, BUSY, gate("g"))["g"].origin.where


def test_what_there_is_no_room_for_runs_there(repo: Repo, out: Path) -> None:
    stays = make_gate(name="stays", command=HERE, env=(("OUT", str(out)),))
    ended = run(repo, BUSY, gate("goes", command=HERE), gate("fails", "failed", HERE), stays)
    assert sorted(went(out)) == ["fails", "goes"]
    goes, fails = ended["goes"], ended["fails"]
    assert (goes.status, goes.origin.where, goes.origin.action_digest) == ("passed", PLACE, "ab/1")
    assert goes.output == b"goes ran there\n"
    assert (fails.status, fails.exit_status, fails.origin.where) == ("failed", 3, PLACE)
    assert ended["busy"].origin.where == ended["stays"].origin.where == ""
    assert (out / "here").read_text() == "\n"
    runs = repo.path / ".git/gitgates/runs"
    assert not [path for path in runs.rglob("*") if "remote" in path.name]


NO_RESULT = {
    "could-not-run": "no worker has this platform",
    "killed": "the process that talks to the server ended early",
    "no-such-status": "",
    "down": "unavailable",
    "pass-with-status": "",
    "failure-without-status": "",
    "half": "the process that talks to the server ended early",
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("end", NO_RESULT)
def test_what_could_not_run_there_runs_here_once(repo: Repo, out: Path, end: str) -> None:
    heard = Heard()
    ended = run(repo, BUSY, gate("goes", end, command=HERE), heard=heard)
    goes = ended["goes"]
    assert (goes.status, goes.origin.where, goes.origin.action_digest) == ("passed", "", "")
    assert goes.output == b"ran here\n"
    assert went(out) == ["goes"]
    assert (out / "here").read_text() == f"{end}\n"
    assert f"could not run on {PLACE}: {NO_RESULT[end]}" in heard.texts[-1]
    assert "; it runs here" in heard.texts[-1]


@pytest.mark.samples(1)
@pytest.mark.parametrize("commands", [3, 1])
def test_output_that_replaces_what_was_written(
    repo: Repo, out: Path, monkeypatch: pytest.MonkeyPatch, commands: int
) -> None:
    if commands > 1:
        monkeypatch.setattr("gitgates.engine.run.job.argument_limit", lambda _env: 40)
    paths = tuple(f"{number:020}" for number in range(commands))
    ended = run(repo, BUSY, gate("goes", "replaced", pass_files=True), paths=paths)
    goes = ended["goes"]
    assert went(out) == ["goes"] * commands
    assert (goes.origin.where, goes.output) == (PLACE, b"all of it\n" * commands)
    assert Path(goes.log_abs).read_bytes() == goes.output


def test_what_cannot_be_started_here_runs_here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_gates, "_COPY", ("no-such-program",))
    heard = Heard()
    goes = run(repo, BUSY, gate("goes", command=HERE), heard=heard)["goes"]
    assert (goes.status, goes.output) == ("passed", b"ran here\n")
    assert (
        "the process that talks to the server ended early: command not found: no-such-program"
        in heard.texts[-1]
    )


def test_without_a_worker_it_runs_here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.proc.helper._START", "raise SystemExit")
    goes = run(repo, BUSY, gate("goes", command=HERE))["goes"]
    assert (goes.status, goes.output) == ("passed", b"ran here\n")


def test_all_gates_of_a_run_have_one_worker(repo: Repo, out: Path) -> None:
    run(repo, BUSY, *map(gate, "abc"))
    pids = {int(line.split()[1]) for line in (out / "there").read_text().splitlines()}
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):  # nothing is left of it
        os.kill(pids.pop(), 0)


@pytest.mark.samples(2)
@pytest.mark.parametrize("end", [*NO_RESULT][::-1])
def test_without_fallback_it_has_not_started(repo: Repo, out: Path, end: str) -> None:
    ended = run(repo, BUSY, gate("goes", end, command=HERE), fallback="fail")
    assert (ended["goes"].status, ended["goes"].origin.where) == ("not-started", "")
    assert ended["goes"].reason.startswith(f"could not run on {PLACE}: {NO_RESULT[end]}")
    assert not (out / "here").exists()


@pytest.mark.parametrize("fallback", ["local", "fail"])
def test_what_cannot_be_sent(repo: Repo, monkeypatch: pytest.MonkeyPatch, fallback: str) -> None:
    def send(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("gitgates.proc.helper.Helper.send", send)
    goes = run(repo, BUSY, gate("goes", command=HERE), fallback=fallback)["goes"]
    assert goes.status == ("passed" if fallback == "local" else "not-started")
    assert "its request cannot be sent: " in (goes.origin.remote_failure or goes.reason)


def test_without_a_pipe_it_runs_here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    command = RemoteGates.command

    def without_pipe(*args: Any, **fields: Any) -> Command:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pipe", lambda: os.open("/dev/null/none", os.O_RDONLY))
            return command(*args, **fields)

    monkeypatch.setattr(RemoteGates, "command", without_pipe)
    goes = run(repo, BUSY, gate("goes", command=HERE))["goes"]
    assert (goes.status, goes.output) == ("passed", b"ran here\n")
    assert "its request cannot be sent: " in goes.origin.remote_failure


def test_where_all_go_there_all_fail_with_a_server_that_is_down(
    repo: Repo, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_REMOTE", "1")
    gates = [gate(name, "down", command=HERE) for name in "abc"]
    ended = run(repo, *gates, fallback="fail", jobs=1)
    assert {result.status for result in ended.values()} == {"not-started"}
    assert not (out / "here").exists()


def test_how_long_a_gate_took_after_a_server_is_not_noted(repo: Repo) -> None:
    run(repo, BUSY, gate("goes", "could-not-run", "sleep 0.3", env=(("TAKES", "0.3"),)))
    assert "goes" not in durations(str(repo.path / ".git/gitgates"))


def test_a_gate_that_fails_here_after_all_fails(repo: Repo) -> None:
    assert run(repo, BUSY, gate("goes", "killed", "exit 5"))["goes"].exit_status == 5


def test_no_other_gate_goes_to_a_server_that_is_down(repo: Repo, out: Path) -> None:
    heard = Heard()
    gates = [gate(name, "down", command=HERE) for name in "abc"]
    ended = run(repo, BUSY, *gates, heard=heard, jobs=1)
    assert {result.status for result in ended.values()} == {"passed"}
    assert went(out) == ["a"]
    assert heard.texts[-1].endswith("; no more gates of this run go there; it runs here")
    run(repo, BUSY, *gates, jobs=1)
    assert len(went(out)) == 2  # one of each run, the second by how long they took


def test_both_tries_share_the_time_of_the_gate(repo: Repo) -> None:
    slow = gate("goes", "could-not-run", "sleep 2", env=(("TAKES", "1"),), timeout_s=2.0)
    result = run(repo, BUSY, slow)["goes"]
    assert (result.status, result.reason) == ("timed-out", "limit 2 s")
    assert 2.0 <= result.duration_s < 3.0


def test_past_its_time_it_is_cancelled(repo: Repo, out: Path) -> None:
    result = run(repo, BUSY, gate("goes", "hangs", HERE, timeout_s=1.5))["goes"]
    assert (result.status, result.origin.where) == ("timed-out", PLACE)
    assert (out / "cancelled").exists()
    assert not (out / "here").exists()


@pytest.mark.parametrize(("end", "status"), [("sleeps", "passed"), ("starts", "timed-out")])
def test_past_its_time_one_that_may_not_have_started_runs_here(
    repo: Repo, out: Path, end: str, status: str
) -> None:
    heard = Heard()
    result = run(repo, BUSY, gate("goes", end, HERE, timeout_s=1.5), heard=heard)["goes"]
    assert (result.status, (out / "here").exists()) == (status, status == "passed")
    assert any("nothing shows that it started" in text for text in heard.texts) is (
        status == "passed"
    )


def test_what_changes_meanwhile_is_not_its_doing(repo: Repo) -> None:
    repo.write("a.txt", "1st\n")

    class Edits(Heard):
        def ended(self, result: GateResult, plan: Any) -> None:
            super().ended(result, plan)
            repo.write("a.txt", f"after {result.gate}\n")

    gates = BUSY, gate("goes", env=(("TAKES", "2"),))
    config = config_of(gates, "pre-commit", 1, strategy="collect")
    config = Config(**{**config._asdict(), "tables": {"remote": TABLE}})
    event = Event(host="manual", name="pre-commit", root_abs=str(repo.path), paths=("a.txt",))
    decision = run_gates(config, event, heard := Edits())
    assert heard.gates[-2:] == ["busy passed", "goes passed"]
    assert (decision.verdict, decision.reason) == (
        BLOCK,
        "a.txt changed while it was checked; run again",
    )


def test_only_what_is_declared_is_sent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("SENT_TOO", "test")
    sent = gate("goes", "environment", "make it", env_inputs=("SENT_*", "NOT_SET"))
    output = run(repo, BUSY, sent)["goes"].output.decode()
    assert "['END', 'GITGATES_HOOK', 'OUT', 'SENT_TOO'] . ('/bin/sh', '-c', 'make it', " in output


def test_a_declared_variable_is_sent_as_the_gate_has_it() -> None:
    it = make_gate(name="a", env=(("A", "1"),), env_inputs=("B",))
    env = {"A": "1", "B": "2", "C": "3", "GITGATES_HOOK": "stop"}
    assert declared_env(it, env) == {"A": "1", "B": "2", "GITGATES_HOOK": "stop"}


@pytest.mark.parametrize(
    "fields",
    [
        {"pass_hook_input": True},
        {"baseline": True},
        {"ratchet": True, "metrics": (("n", "x", "lower"),)},
        {"command": None, "pre_commit": ()},
        {"remote": False},
    ],
)
def test_what_needs_more_than_the_files_stays(repo: Repo, fields: dict[str, Any]) -> None:
    there = remote_gates.RemoteGates(
        find_repo(str(repo.path), os.environ), Config(tables={"remote": TABLE})
    )
    it = make_gate(name="a", command="true", remote=True)
    assert there.may_run(Step(it))
    assert not there.may_run(Step(it.changed(**fields)))


def test_what_costs_least_goes_first(repo: Repo, out: Path) -> None:
    seconds = {"a": 9.0, "b": 3.0, "c": 5.0, "busy": 99.0}
    there = {remote_name("a"): 19.0, remote_name("b"): 4.0}
    note_durations(str(repo.path / ".git/gitgates"), seconds | there)
    run(repo, BUSY.changed(command="sleep 2"), *map(gate, "abcd"), jobs=1)
    assert went(out) == ["c", "d", "b", "a"]  # d: not known


def test_how_long_they_take_there_is_told_apart(repo: Repo) -> None:
    run(repo, BUSY, gate("a", env=(("TAKES", "0.3"),)))
    known = durations(str(repo.path / ".git/gitgates"))
    assert known[remote_name("a")] > 0.3
    assert "a" not in known


def test_a_pass_is_recorded_with_the_action(repo: Repo) -> None:
    repo.write("file", "text\n")
    goes = gate("goes", command=HERE, reuse=True)
    assert run(repo, BUSY, goes)["goes"].origin.action_digest == "ab/1"
    (proof,) = read_all(str(repo.path / ".git/gitgates"))
    assert (proof.gate, proof.action_digest) == ("goes", "ab/1")
    again = run(repo, BUSY, goes)["goes"]
    assert again.origin.reused
    assert not again.origin.where


PLACES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"remote": False}, {}),
    ({}, {"platform": (("a", "b"),)}),
    ({"image": "docker://other"}, {}),
    ({"ignored_inputs": ("other",)}, {}),
    ({}, {"instance": "other"}),
    ({}, {"execution": "grpc://127.0.0.1:2"}),
]


def test_the_conditions_of_a_pass_are_where_the_gate_runs(repo: Repo) -> None:
    found = find_repo(str(repo.path), os.environ)

    def conditions(it: Gate, **table: Any) -> str:
        return RemoteGates(found, Config(tables={"remote": TABLE | table})).conditions(it)

    goes = gate("goes")
    known = [conditions(goes), *(conditions(goes.changed(**f), **t) for f, t in PLACES[1:])]
    assert len(set(known)) == len(known)
    assert conditions(goes) == conditions(goes, jobs=9)


@pytest.mark.samples(2)
@pytest.mark.parametrize(("fields", "table"), PLACES)
def test_a_pass_counts_as_long_as_the_gate_would_run_in_the_same_place(
    repo: Repo, fields: dict[str, Any], table: dict[str, Any]
) -> None:
    repo.write("file", "text\n")
    goes = gate("goes", reuse=True)
    assert not run(repo, BUSY, goes)["goes"].origin.reused
    assert run(repo, BUSY, goes)["goes"].origin.reused
    assert not run(repo, BUSY, goes.changed(**fields), **table)["goes"].origin.reused


def test_a_pass_counts_as_long_as_ignored_inputs_are_the_same(repo: Repo) -> None:
    repo.write(".gitignore", "packages/\n")
    repo.write("packages/one", "1")
    goes = gate("goes", reuse=True, ignored_inputs=("packages/",))
    run(repo, BUSY, goes)
    repo.write("packages/__pycache__/written", "by a program")
    assert run(repo, BUSY, goes)["goes"].origin.reused
    repo.write("packages/one", "2")
    assert not run(repo, BUSY, goes)["goes"].origin.reused


def test_a_pass_of_files_there_counts_for_all_of_them(repo: Repo) -> None:
    goes = gate("goes", reuse="by-file", pass_files=True, files=("*.txt",))
    repo.write("a.txt", "text\n")
    assert run(repo, BUSY, goes, paths=["a.txt"])["goes"].origin.where == PLACE
    assert run(repo, BUSY, goes, paths=["a.txt"])["goes"].origin.reused
    repo.write("b.txt", "text\n")
    assert not run(repo, BUSY, goes, paths=["a.txt", "b.txt"])["goes"].origin.reused


def test_a_pass_of_the_servers_cache_is_told(repo: Repo) -> None:
    result = run(repo, BUSY, gate("goes", "cached", reuse=True, env=(("TAKES", "0.3"),)))["goes"]
    assert (result.status, result.origin.where, result.origin.reused) == (
        "passed",
        PLACE,
        "the server's cache",
    )
    assert remote_name("goes") not in durations(str(repo.path / ".git/gitgates"))


@pytest.mark.samples(2)
@pytest.mark.parametrize(("value", "reuses"), [("0", "False"), ("", "True"), ("audit", "False")])
def test_where_nothing_is_reused_the_servers_cache_is_not_either(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, value: str, reuses: str
) -> None:
    monkeypatch.setenv("GITGATES_REUSE", value)
    output = run(repo, BUSY, gate("goes", "environment", reuse=True))["goes"].output
    assert output.decode().endswith(f" {reuses}\n")


@pytest.mark.samples(2)
@pytest.mark.parametrize("end", ["failed", "killed", "could-not-run"])
def test_nothing_but_a_pass_is_recorded(repo: Repo, end: str) -> None:
    goes = gate("goes", end, command="exit 1", reuse=True)
    assert run(repo, BUSY, goes)["goes"].status == "failed"
    assert not [*read_all(str(repo.path / ".git/gitgates"))]


def test_all_runs_share_the_jobs_there(repo: Repo, out: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    name = f"remote-{digest(PLACE)}"
    here, there = _pool(folder, 1), _pool(folder, 2, name)
    slots, jobs = here.take(1, 1, 60.0) or [], there.take(2, 2, 60.0) or []
    queues = [folder / "queue", folder / name / "queue"]
    waited = threading.Event()

    def give_back() -> None:
        until = time.monotonic() + 10.0
        while not all(map(os.listdir, queues)) and time.monotonic() < until:
            time.sleep(0.01)
        if not went(out):
            waited.set()
        there.give_back(jobs)
        there.settle()

    thread = threading.Thread(target=give_back)
    thread.start()
    result = run(repo, gate("goes"), jobs=2)["goes"]
    thread.join()
    assert waited.is_set()
    assert (result.origin.where, went(out)) == (PLACE, ["goes"])
    assert [os.listdir(queue) for queue in queues] == [[], []]
    release(slots)


def _pool(folder: Path, size: int, name: str = "") -> Pool:
    pool = open_pool({"GITGATES_POOL": str(folder)}, size, is_urgent=False, name=name)
    assert pool
    return pool


@pytest.mark.samples(2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_it_is_cancelled_when_the_run_is_ended(repo: Repo, out: Path, number: int) -> None:
    pid = os.fork()
    if not pid:
        try:
            run(repo, BUSY.changed(command="sleep 5"), gate("goes", "hangs"))
        finally:
            os._exit(0)
    _wait_for(out / "there")
    os.kill(pid, number)
    os.waitpid(pid, 0)
    _wait_for(out / "cancelled")


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 10.0
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert path.exists()
