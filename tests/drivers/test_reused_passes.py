"""What one event has proved is not run again by the next: Stop, commit, push, `gitgates run`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin

CONFIG = """\
[gates.check]
command = "./check"
reuse = true
[hooks.Stop]
gates = ["check"]
[hooks.pre-commit]
gates = ["check"]
[hooks.pre-push]
gates = ["check"]
[hooks.manual]
gates = ["check"]
"""
CHECK = '#!/bin/sh\necho x >> "$OUT/log"\n! grep -q BAD a.txt\n'


def runs(out: Path) -> int:
    """Return how many times the gate has run since the last call."""
    path = out / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return len(lines)


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    repo.write("check", CHECK).chmod(0o755)
    repo.write("a.txt", "one\n")
    agent = begin(repo, CONFIG)
    monkeypatch.setenv("COUNT_ABS", str(agent.count_abs))  # as in its own hooks
    # What the gate reads beside the repository is then above private checkouts, too.
    monkeypatch.setenv("XDG_CACHE_HOME", str(repo.path.parent / "cache"))
    repo.add_origin()
    repo.shim("pre-commit", "pre-push")
    agent.stop()  # tells once that git's hooks have changed
    return agent


@pytest.mark.slow
def test_the_gate_runs_once(repo: Repo, out: Path, agent: Agent) -> None:
    agent.write("a.txt", "two\n")
    agent.write("new.txt", "untracked\n")
    assert agent.stop() == {}
    assert runs(out) == 1
    repo.git("add", ".")
    done = repo.commit("by an agent")
    assert done.returncode == 0
    assert b"reused" in done.stderr
    repo.git("push", "-q", "origin", "main")
    done = repo.gitgates("run")
    assert b"reused" in done.stdout
    assert runs(out) == 0
    repo.git("worktree", "add", "-q", "--detach", "../next")
    done = Repo(repo.path.parent / "next").gitgates("run")
    assert b"reused" in done.stdout
    assert runs(out) == 0
    for arguments in ((), ("pre-commit",)):
        assert repo.gitgates("run", *arguments, "--no-reuse").returncode == 0
        assert runs(out) == 1
        assert repo.gitgates("run", *arguments, env={"GITGATES_REUSE": "0"}).returncode == 0
        assert runs(out) == 1


@pytest.mark.slow
def test_a_part_of_the_work_is_another_content(repo: Repo, out: Path, agent: Agent) -> None:
    agent.write("a.txt", "two\n")
    agent.write("seed.py", "seed = 2\n")
    agent.stop()
    assert runs(out) == 1
    repo.git("add", "a.txt")
    assert repo.commit("a part").returncode == 0  # the rest is hidden, which nobody reads
    assert runs(out) == 0
    repo.git("push", "-q", "origin", "main")  # in a private checkout
    assert runs(out) == 0
    agent.prompt()
    agent.stop()
    assert runs(out) == 0
    repo.git("add", ".")
    assert repo.commit("the rest").returncode == 0
    assert runs(out) == 0


@pytest.mark.slow
def test_a_failure_is_met_again(repo: Repo, out: Path, agent: Agent) -> None:
    agent.write("a.txt", "BAD\n")
    assert agent.stop()["decision"] == "block"
    assert runs(out) == 1
    repo.git("add", ".")
    assert repo.commit("bad").returncode == 1
    assert repo.commit("bad").returncode == 1
    assert runs(out) == 2
    assert repo.commit("bad", "--no-verify").returncode == 0
    assert repo.ask("git", "push", "-q", "origin", "main").returncode == 1
    assert runs(out) == 1


@pytest.mark.slow
def test_commit_of_everything_and_of_paths(repo: Repo, out: Path, agent: Agent) -> None:
    for number, arguments in enumerate((("-a",), ("--", "a.txt"), ("-i", "a.txt"))):
        agent.prompt()
        agent.write("a.txt", f"{number}\n")
        agent.stop()
        assert runs(out) == 1
        assert repo.commit("all", *arguments).returncode == 0
        assert runs(out) == 0


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["started", "writing"])
def test_a_killed_run_has_proved_nothing(repo: Repo, out: Path, agent: Agent, moment: str) -> None:
    waits = CHECK + 'while [ -e "$OUT/wait" ]; do sleep 0.01; done\n'
    agent.write("check", waits)
    (out / "wait").write_text("")
    program = (sys.executable, "-m", "gitgates", "run")
    child = subprocess.Popen(program, cwd=repo.path, env={**os.environ})
    until = time.monotonic() + 30
    while not (out / "log").exists() and time.monotonic() < until:
        time.sleep(0.01)
    if moment == "writing":
        (out / "wait").unlink()
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=30)
    (out / "wait").unlink(missing_ok=True)
    assert runs(out) == 1
    counts = []
    for _ in range(2):
        assert repo.gitgates("run").returncode == 0
        counts.append(runs(out))
    assert counts == [1, 0] or (moment == "writing" and counts == [0, 0])


@pytest.mark.slow
def test_by_file_on_all_files(repo: Repo, out: Path, agent: Agent) -> None:
    repo.write("each", '#!/bin/sh\necho "$*" >> "$OUT/log"\n! grep -q BAD "$@"\n').chmod(0o755)
    repo.config(
        '[gates.each]\ncommand = ["./each"]\nfiles = ["*.txt"]\npass_files = true\n'
        'reuse = "by-file"\ninputs = ["each.toml"]\n[hooks.manual]\ngates = ["each"]\n'
    )
    for number in range(20):
        repo.write(f"{number}.txt", f"{number}\n")
    repo.git("add", ".")
    assert repo.gitgates("run", "--all-files").returncode == 0
    assert len((out / "log").read_text().split()) == 21
    runs(out)
    agent.write("7.txt", "seven\n")
    done = repo.gitgates("run", "--all-files")
    assert b"reused: 20 of 21 files" in done.stdout
    assert (out / "log").read_text() == "7.txt\n"


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_amend_merge_and_rebase(repo: Repo, out: Path) -> None:
    repo.shim("pre-merge-commit")
    repo.write("a.txt", "two\n")
    assert repo.commit("all", "-a").returncode == 0
    assert runs(out) == 1
    assert repo.commit("other message", "--amend").returncode == 0
    assert runs(out) == 0
    repo.write("a.txt", "three\n")
    assert repo.commit("other content", "-a", "--amend").returncode == 0
    assert runs(out) == 1
    repo.git("switch", "-qc", "side", "HEAD~")
    repo.write("side.txt", "")
    repo.git("add", ".")
    assert repo.commit("side").returncode == 0
    assert runs(out) == 1
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    assert runs(out) == 1
    repo.git("switch", "-q", "side")
    repo.git("rebase", "-q", "main~")  # to the same content as that of the merge
    assert runs(out) == 0
    repo.git("push", "-q", "origin", "side", "main")
    assert runs(out) == 0
    repo.write("a.txt", "BAD\n")
    assert repo.commit("bad", "-a", "--amend").returncode == 1
    assert runs(out) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_what_is_committed_is_not_what_was_proved(repo: Repo, out: Path) -> None:
    repo.write("b.txt", "first\n")
    repo.write("check", CHECK.replace("a.txt", "a.txt b.txt"))
    repo.git("add", ".")
    assert repo.commit("first").returncode == 0
    assert runs(out) == 1
    repo.write("b.txt", "good\n")
    assert repo.gitgates("run").returncode == 0
    assert runs(out) == 1
    repo.git("add", "b.txt")
    repo.write("b.txt", "BAD\n")
    assert repo.commit("good is staged").returncode == 0  # which has passed
    assert runs(out) == 0
    assert repo.gitgates("run").returncode == 1
    repo.git("add", "b.txt")
    repo.write("b.txt", "good\n")
    assert repo.commit("BAD is staged").returncode == 1
    repo.write("a.txt", "two\n")
    assert repo.commit("only a.txt", "--", "a.txt").returncode == 0
    assert repo.commit("BAD is staged").returncode == 1
    assert runs(out) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_hooks_of_a_linked_worktree(repo: Repo, out: Path) -> None:
    repo.git("worktree", "add", "-qb", "next", "../next")
    linked = Repo(repo.path.parent / "next")
    linked.write("a.txt", "two\n")
    assert linked.commit("there", "-a").returncode == 0
    assert runs(out) == 1
    repo.git("merge", "-q", "next")
    assert repo.gitgates("run").returncode == 0
    repo.git("push", "-q", "origin", "main", "next")
    assert runs(out) == 0
    linked.write("a.txt", "BAD\n")
    assert linked.commit("bad", "-a").returncode == 1
    assert repo.gitgates("run").returncode == 0
    assert runs(out) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_verify_reads_what_others_have_proved(repo: Repo, out: Path) -> None:
    for text in ("two\n", "BAD\n"):
        repo.write("a.txt", text)
        repo.gitgates("run")
        repo.commit("around", "-a", "--no-verify")
    assert runs(out) == 2
    done = repo.gitgates("verify", "--run-missing", "HEAD~2..HEAD")
    assert done.returncode == 1
    lines = [line.split() for line in done.stdout.decode().splitlines() if "  around" in line]
    assert [words[1] for words in lines] == ["gated", "failed:"]
    assert runs(out) == 1  # of the one that has failed
    repo.git("reset", "-q", "--hard", "HEAD~")
    repo.write("a.txt", "three\n")
    repo.commit("around", "-a", "--no-verify")
    assert repo.gitgates("verify", "--run-missing", "HEAD~..HEAD").returncode == 0
    assert runs(out) == 1
    assert repo.gitgates("run").returncode == 0
    assert runs(out) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_headless_attempts(
    repo: Repo, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path_factory.mktemp("out")  # beside the repository, it would count as what is there
    monkeypatch.setenv("OUT", str(out))
    repo.config(f'{CONFIG}[hooks.headless]\ngates = ["check"]\n')
    repo.commit("headless", "-a", "--no-verify")
    repo.write("a.txt", "proved\n")
    assert repo.gitgates("run").returncode == 0
    repo.git("checkout", "-q", "a.txt")
    runs(out)
    command = "sh -c 'cat > /dev/null; echo proved > a.txt'"
    assert repo.gitgates("headless", "go", "--agent-command", command).returncode == 0
    assert runs(out) == 0
    command = "sh -c 'cat > /dev/null; echo new > a.txt'"
    assert repo.gitgates("headless", "go", "--agent-command", command).returncode == 0
    assert runs(out) == 1
    repo.git("push", "-q", "origin", "main")
    assert repo.gitgates("run").returncode == 0
    assert runs(out) == 0
