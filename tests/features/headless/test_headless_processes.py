"""What an agent has started ends with its turn, wherever that has gone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Repo
from test_headless import CONFIG, headless, started, statuses
from test_headless import agent as agent_of

from gitgates.proc import descendants
from gitgates.proc.descendants import Descendants

GOOD = "echo good > a.txt"
# A shell that says its number, and stays; what it runs is put before. LEFT is an absolute path.
STAYS = "sh -c 'echo $$ > LEFT; exec sleep 600'"
DEAF = """sh -c 'trap "" TERM HUP INT; echo $$ > LEFT; while :; do sleep 1; done'"""
UNTIL = "while ! [ -s LEFT ]; do sleep .02; done"


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def agent(repo: Repo, *turns: str) -> str:
    return agent_of(repo, *(placed(repo, turn) for turn in turns))


def placed(repo: Repo, script: str) -> str:
    return script.replace("LEFT", str(repo.path.parent / "left"))


def kept(repo: Repo) -> str:
    """Return the only ref that has the work of a failed run."""
    return repo.git("for-each-ref", "--format=%(refname)", "refs/gitgates/failed")


def cgroup() -> str:
    """Return where control groups are made; skip the test where that cannot be done."""
    found = Descendants("GITGATES_TEST=1")
    found.end()
    if not found.cgroup_abs:
        pytest.skip("no control group can be made here")
    return os.path.dirname(found.cgroup_abs)


def runs(repo: Repo) -> bool:
    """Return whether what the agent has left runs."""
    pid = (repo.path.parent / "left").read_text().strip()
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(is_over: Callable[[], bool]) -> bool:
    until = time.monotonic() + 15
    while not is_over() and time.monotonic() < until:
        time.sleep(0.05)
    return is_over()


LEFT = [
    f"setsid {STAYS} &",
    f"(setsid {STAYS} >/dev/null 2>&1 &)",
    f"nohup {STAYS} >/dev/null &",
    pytest.param(f"setsid {DEAF} >/dev/null 2>&1 &", marks=pytest.mark.slow),
    f"env -i setsid {STAYS} &",
]


@pytest.mark.samples(1)
@pytest.mark.parametrize("left", LEFT)
def test_what_has_left_the_group_ends_with_the_turn(work: Repo, left: str) -> None:
    if "env -i" in left:
        cgroup()
    done = headless(work, "go", "--agent-command", agent(work, f"{left}\n{UNTIL}; {GOOD}"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert not runs(work)


@pytest.mark.slow
@pytest.mark.parametrize("left", [f"setsid {STAYS} &", f"setsid {DEAF} >/dev/null 2>&1 &"])
def test_without_control_groups_the_environment_tells(
    work: Repo, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descendants, "_make_cgroup", lambda: "")
    here = f"here-{os.getpid()}"  # the same test may run elsewhere at the same time
    there = Descendants(f"GITGATES_TEST={here}")
    env = {**os.environ, "GITGATES_TEST": here}
    subprocess.run(
        ["sh", "-c", placed(work, f"{left} {UNTIL}")], cwd=work.path, env=env, check=True
    )
    other = subprocess.Popen(["sleep", "600"], env={**env, "GITGATES_TEST": f"{here}, too"})
    assert runs(work)
    there.end()
    assert not runs(work)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_without_proc_ps_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; of ps(1) we ask the same on Linux."""
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [] if path == "/proc" else real(path))
    monkeypatch.setattr(descendants, "_make_cgroup", lambda: "")
    here = f"by-ps-{os.getpid()}"
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, "GITGATES_TEST": here})
    there = Descendants(f"GITGATES_TEST={here}")
    assert ends(lambda: there.pids() == {process.pid})
    process.kill()
    process.wait()
    assert there.pids() == set()


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_of_a_run_that_is_ended_nothing_runs_on(work: Repo, how: str) -> None:
    command = agent(work, f"setsid {STAYS} & {UNTIL}; touch $AGENT/ready; sleep 600")
    process = started(work, "--agent-command", command)
    assert runs(work)
    getattr(process, how)()
    process.communicate(timeout=30)
    assert ends(lambda: not runs(work))


@pytest.mark.thorough
@pytest.mark.slow
def test_no_control_group_stays(work: Repo) -> None:
    parent = cgroup()
    command = agent(work, f"setsid {STAYS} & {UNTIL}; touch $AGENT/ready; sleep 600")
    process = started(work, "--agent-command", command)
    assert [name for name in os.listdir(parent) if f"gitgates-{process.pid}-" in name]
    process.kill()
    process.communicate(timeout=30)
    assert ends(
        lambda: not [name for name in os.listdir(parent) if f"gitgates-{process.pid}-" in name]
    )


def test_control_groups_that_killed_runs_have_left_are_removed() -> None:
    """All of such a run was killed at once, also what would have removed its control group."""
    parent, now_ns = cgroup(), time.monotonic_ns()
    left, new, busy = (
        Path(parent, f"gitgates-1-{now_ns - age_s * 10**9}") for age_s in (120, 0, 121)
    )
    for path in (left, new, left / "below", busy):
        path.mkdir()
    process = subprocess.Popen(["sleep", "600"])
    (busy / "cgroup.procs").write_text(str(process.pid))
    try:
        Descendants("GITGATES_TEST=left").end()
        assert [path.exists() for path in (left, new, busy)] == [False, True, True]
    finally:
        process.kill()
        process.wait()
        new.rmdir()
        ends(lambda: not (busy / "cgroup.procs").read_text())
        busy.rmdir()


@pytest.mark.thorough
def test_a_commit_whose_hook_hides_work_puts_it_back_where_the_turn_is_cut(work: Repo) -> None:
    """The guardian of a hook of ours in the turn is let finish."""
    work.config(
        CONFIG.replace("[hooks.headless]", '[hooks.pre-commit]\ngates = ["wait"]\n[hooks.headless]')
        + '[gates.wait]\ncommand = "touch $AGENT/ready; sleep 600"\n'
    )
    work.write("b.txt", "b\n")
    work.commit_all("hook")
    assert work.gitgates("install-hooks").returncode == 0
    commits = "echo staged > b.txt; git add b.txt; echo unstaged > b.txt; git commit -qm x"
    process = started(work, "--agent-command", agent(work, f"setsid -w sh -c '{commits}'"))
    process.terminate()
    process.communicate(timeout=30)
    assert work.git("show", f"{kept(work)}:b.txt") == "unstaged"


@pytest.mark.thorough
def test_what_was_done_when_time_is_up_is_checked_before_it_is_given_up(work: Repo) -> None:
    command = agent(work, f"{GOOD}; sleep 600")
    done = headless(work, "go", "--budget-minutes", "0.1", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = "the time limit ended the agent's last turn; the gates checked what it had done"
    assert f"note: {said}\n" in done.stdout.decode()
    assert "The time limit ended the agent's last turn" in work.git("log", "-1", "--format=%b")
    assert work.git("show", "HEAD:a.txt") == "good"
    assert "sh: it did not finish within" in done.stdout.decode()


@pytest.mark.thorough
def test_what_was_done_when_time_is_up_is_given_up_where_it_is_wrong(work: Repo) -> None:
    head = work.head()
    command = agent(work, "echo worse > a.txt; sleep 600")
    done = headless(work, "go", "--budget-minutes", "0.1", "--agent-command", command)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert b"the time limit of the run was reached" in done.stdout
    assert statuses(work)[0]["test"] == "failed"
    assert (work.head(), work.git("status", "--porcelain")) == (head, "")
