"""An agent that nobody watches: gates, retries, the commit, and what is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from conftest import Repo
from worktree_state import files, whole

from gitgates.hosts.headless import client

# Without save points, which other tests have: each takes 16 processes, and waits ten seconds for
# unstaged work that the run itself has stashed.
CONFIG = """\
[gates.test]
command = "grep -q good a.txt"
[gates.lint]
command = "! grep -n TODO *.txt"
[gates.build]
command = "test ! -e broken"
[hooks.headless]
gates = ["test", "lint", "build"]
max_retries = 2
[undo]
enabled = false
"""


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    repo.git("status")
    return repo


def agent(repo: Repo, *turns: str) -> str:
    """Return the command of an agent that does one of these shell scripts each turn."""
    folder = repo.path.parent / "agent"
    folder.mkdir(exist_ok=True)
    for number, turn in enumerate(turns, 1):
        (folder / f"turn{number}.sh").write_text(turn)
    script = folder / "agent.sh"
    script.write_text(
        f"#!/bin/sh\nAGENT={folder}\nn=$(($(ls {folder}/prompt* 2>/dev/null | wc -l) + 1))\n"
        f"cat > {folder}/prompt$n\n[ -e {folder}/turn$n.sh ] && . {folder}/turn$n.sh\n"
        'echo "did turn $n"\n'
    )
    return f"sh {script}"


def prompts(repo: Repo) -> list[str]:
    """Return what the agent was told, turn by turn."""
    folder = repo.path.parent / "agent"
    return [path.read_text() for path in sorted(folder.glob("prompt*"))]


def left(repo: Repo) -> list[str]:
    """Return what a run has left: worktrees, refs that it needs, and what is known of it."""
    worktrees = repo.git("worktree", "list", "--porcelain").split("\n\n")[1:]
    refs = repo.git("for-each-ref", "--format=%(refname)", "refs/gitgates/held")
    branches = repo.git("for-each-ref", "--format=%(refname)", "refs/heads/gitgates")
    folders = [path.name for path in (repo.path / ".git/gitgates").glob("headless/*")]
    return [*worktrees, *refs.split(), *branches.split(), *folders]


def headless(repo: Repo, *args: str) -> subprocess.CompletedProcess[bytes]:
    return repo.gitgates("headless", *args)


def result(repo: Repo) -> dict[str, Any]:
    """Return the document of the newest run."""
    runs = sorted((repo.path / ".git/gitgates/runs").glob("*/result.json"))
    document: dict[str, Any] = json.loads(runs[-1].read_text())
    return document


def statuses(repo: Repo) -> list[dict[str, str]]:
    """Return of each attempt how each gate ended."""
    attempts = result(repo)["quality_gates"]["attempts"]
    return [{one["name"]: one["status"] for one in attempt["results"]} for attempt in attempts]


def test_what_passes_at_once_is_committed(work: Repo) -> None:
    before = work.head()
    os.utime(work.path / "a.txt", (1, 1))  # it was not changed for that
    done = headless(work, "make it good", "--agent-command", agent(work, "echo good > a.txt"))
    assert done.returncode == 0, done.stderr
    assert b"all gates passed" in done.stdout
    assert work.git("rev-parse", "HEAD^") == before
    assert work.git("status", "--porcelain") == ""
    run = result(work)["execution_id"]
    body = work.git("log", "-1", "--format=%B")
    assert body == f"make it good\n\ndid turn 1\n\nGitgates-Run: {run}"
    assert prompts(work) == ["make it good"]
    assert left(work) == []
    resumed = headless(work, "go on", "--resume", "latest")
    assert resumed.returncode == 64
    assert b"`sh` cannot resume a conversation" in resumed.stderr


# What an agent does first → the gates that fail, and the one that takes too long.
FAILING = [
    ("echo TODO > a.txt; touch broken", ["test", "lint"], ["build"]),
    ("echo other > a.txt", ["test"], []),
    ("echo good TODO > a.txt", ["lint"], []),
    ("echo good > a.txt; touch broken", [], ["build"]),
]


@pytest.mark.samples(1)
@pytest.mark.parametrize(("first", "failed", "late"), FAILING)
def test_failures_go_back_and_what_is_mended_is_committed(
    work: Repo, first: str, failed: list[str], late: list[str]
) -> None:
    slow = CONFIG.replace('"test ! -e broken"', '"[ ! -e broken ] || sleep 60"\ntimeout = 0.3')
    work.config(slow)
    work.commit_all("slow")
    command = agent(work, first, "rm -f broken; echo good > a.txt")
    done = headless(work, "make it good", "--agent-command", command)
    assert done.returncode == 0, done.stderr
    assert [name for name, end in statuses(work)[0].items() if end == "failed"] == failed
    assert [name for name, end in statuses(work)[0].items() if end == "timed-out"] == late
    assert set(statuses(work)[1].values()) == {"passed"}
    _, told = prompts(work)
    assert told.startswith("make it good\n\n")  # such a client begins a new conversation
    assert all(f"`{name}` failed" in told for name in failed)
    assert ("timed out" in told) == bool(late)
    assert work.git("show", "--name-only", "--format=", "HEAD") == "a.txt"


def test_what_cannot_be_mended_is_kept_and_nothing_else_touched(work: Repo) -> None:
    work.write("dirty.txt", "first\n")
    work.commit_all("second")
    work.write("dirty.txt", "changed\n")
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    work.write("staged.txt", "and changed\n")
    work.write("untracked/file", "untracked\n")
    before, head = whole(work), work.head()
    ruin = (
        "echo worse > a.txt; git commit -qam mine; rm -rf untracked; echo x > dirty.txt; git add ."
    )
    command = agent(work, ruin, "echo a > a.txt", "echo b > a.txt", "echo good > a.txt")
    done = headless(work, "make it good", "--branch", "fix", "--agent-command", command)
    assert done.returncode == 1
    assert b"the gates still failed when no retry was left" in done.stdout
    assert len(prompts(work)) == 3
    assert (whole(work), work.head()) == (before, head)
    assert work.git("branch", "--format=%(refname:short)") == "main"
    run = result(work)["execution_id"]
    assert not (work.path / f".git/gitgates/runs/{run}/open").exists()  # no attempt will follow
    restored = work.gitgates("runs", "restore", run)
    assert restored.returncode == 0, restored.stderr
    assert work.git("show", f"headless-{run}:a.txt") == "b"
    assert work.git("show", f"headless-{run}:dirty.txt") == "x"
    assert (whole(work), left(work)) == (before, [])


@pytest.mark.thorough
@pytest.mark.slow
def test_gates_have_their_own_timeouts_and_no_other(work: Repo) -> None:
    work.config(CONFIG.replace('"test ! -e broken"', '"sleep 4.5"'))
    work.commit_all("slow")
    done = headless(work, "go", "--agent-command", agent(work, "echo good > a.txt"))
    assert done.returncode == 0, done.stderr
    assert set(statuses(work)[0].values()) == {"passed"}


@pytest.mark.thorough
def test_what_an_agent_cannot_fix_ends_the_run(work: Repo) -> None:
    python = sys.executable
    say = f"{python} -m gitgates cannot-fix test --reason 'no network'"
    command = agent(work, "echo worse > a.txt", f"echo still > a.txt; {say}")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"the agent reported that it cannot fix the failures" in done.stdout, done
    assert result(work)["outcome"] == "cannot-fix"
    assert work.git("status", "--porcelain") == ""


def test_a_gate_that_cannot_start_is_said_once(work: Repo) -> None:
    work.config(CONFIG.replace("grep -q good a.txt", "no-such-program"))
    work.commit_all("missing")
    command = agent(work, "echo 1 > a.txt", "echo 2 > a.txt", "echo 3 > a.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"a gate could not run" in done.stdout
    assert len(prompts(work)) == 2


def test_a_terminal_gate_ends_the_run_at_once(work: Repo) -> None:
    work.config(CONFIG.replace("[gates.lint]", "terminal = true\n[gates.lint]"))
    work.commit_all("terminal")
    command = agent(work, "echo bad again > a.txt", "echo good > a.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"a gate with `terminal = true` did not pass" in done.stdout
    assert len(prompts(work)) == 1


def test_two_turns_without_a_change_end_the_run(work: Repo) -> None:
    done = headless(work, "go", "--agent-command", agent(work, "true"))
    assert done.returncode == 1
    assert b"the agent changed nothing in two turns" in done.stdout
    assert len(prompts(work)) == 2


@pytest.mark.parametrize(
    "argv",
    [
        "claude -p --output-format json --resume S --more",
        "codex exec --json --more resume S -",  # its `resume` does not accept all options
        "gemini --output-format json --resume S --more",
    ],
)
def test_a_resumed_conversation_has_the_same_arguments(argv: str) -> None:
    started = client(argv.split(maxsplit=1)[0]).start("go on", "S", ("--more",))
    assert " ".join(started.argv) == argv
    assert started.stdin == b"go on"


@pytest.mark.thorough
def test_two_crashes_end_the_run(work: Repo) -> None:
    command = agent(work, "echo good > a.txt; echo no quota >&2; exit 3", "exit 3")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"gitgates: sh: exit status 3\n" in done.stdout + done.stderr
    assert b"the agent's client failed twice: exit status 3" in done.stdout
    assert work.git("status", "--porcelain") == ""


def test_a_commit_that_a_hook_of_git_refuses_is_a_failed_attempt(work: Repo) -> None:
    hook = work.path / ".git/hooks/pre-commit"
    hook.write_text(
        "#!/bin/sh\ngit diff --cached --quiet -- c.txt && echo c.txt is wanted && exit 1\n"
        "for f in a.txt new; do echo fixed >> $f; git add $f; done\n"
    )
    hook.chmod(0o755)
    command = agent(work, "echo good > a.txt", "echo c > c.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 0, done.stderr
    assert "`git commit` failed:\n\nc.txt is wanted" in prompts(work)[1]
    assert work.git("show", "--name-only", "--format=", "HEAD") == "a.txt\nc.txt\nnew"
    assert work.git("status", "--porcelain") == ""


def test_uncommitted_changes_stay_where_they_are(work: Repo) -> None:
    """The run begins at HEAD; git brings its commit where no change is in the way."""
    work.write("mine.txt", "mine\n")
    work.write("todo.txt", "TODO, of somebody else\n")
    work.commit_all("second")
    work.write("mine.txt", "mine, changed\n")
    work.write("new.txt", "TODO, untracked\n")
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    work.write("staged.txt", "and more\n")
    before = files(work)
    turn = agent(work, "ls > $AGENT/seen; rm todo.txt; echo good > a.txt; echo b > b.txt")
    done = headless(work, "go", "--agent-command", turn)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert b"your uncommitted changes are not part of the run" in done.stdout
    assert work.git("show", "--name-only", "--format=", "HEAD") == "a.txt\nb.txt\ntodo.txt"
    assert (work.path.parent / "agent/seen").read_text() == (
        "a.txt\nmine.txt\npyproject.toml\ntodo.txt\n"
    )
    assert work.git("status", "--porcelain").split("\n") == [
        " M mine.txt",
        "AM staged.txt",
        "?? new.txt",
    ]
    now = files(work)
    assert {path for path in before | now if before.get(path) != now.get(path)} == {
        *("a.txt", "b.txt", "todo.txt")
    }


# What is there before the run, and what happens while the agent works; why git does not bring it.
NOT_TAKEN = [
    ("echo mine > a.txt", "true", "would be overwritten by merge"),
    ("echo mine > b.txt", "true", "would be overwritten by merge"),
    ("echo b.txt > .gitignore; echo mine > b.txt", "true", "would be overwritten by merge"),
    ("git config merge.autoStash true; echo mine > a.txt", "true", "would be overwritten by merge"),
    ("true", "git commit -q --allow-empty -m mine", "HEAD is no longer where it was"),
    ("git branch other", "git switch -q other", "HEAD is no longer where it was"),
]


@pytest.mark.samples(3)
@pytest.mark.parametrize(("before", "meanwhile", "why"), NOT_TAKEN)
def test_where_git_would_touch_own_work_the_commit_stays_on_its_branch(
    work: Repo, before: str, meanwhile: str, why: str
) -> None:
    subprocess.run(before, shell=True, cwd=work.path, check=True)
    there = f"(cd {work.path}; {meanwhile})"
    at, head = whole(work), work.head()
    command = agent(work, f"{there}; echo good > a.txt; echo b > b.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    branch = f"gitgates/{result(work)['execution_id']}"
    note = done.stdout.decode().partition(f"note: the commit is on branch {branch}: ")[2]
    assert why in note.partition(f"; to merge it: git merge {branch}")[0]
    assert work.git("show", f"{branch}:b.txt") == "b"
    assert left(work) == [f"refs/heads/{branch}"]
    if meanwhile == "true":
        assert (whole(work), work.head()) == (at, head)


def test_uncommitted_changes_can_be_its_first_commit(work: Repo) -> None:
    work.write("mine.txt", "mine\n")
    work.git("add", "mine.txt")
    work.write("new/mine.txt", "new\n")
    work.write(".git/info/exclude", "*.env\n")
    work.write("secret.env", "secret\n")
    before, head = whole(work), work.head()
    command = agent(work, "cat mine.txt new/mine.txt > b.txt; echo good > a.txt")
    done = headless(work, "go", "--include-uncommitted", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    branch = f"gitgates/{result(work)['execution_id']}"
    assert f"to merge it: git stash -u && git merge {branch}" in done.stdout.decode()
    assert work.git("show", "--name-only", "--format=", branch) == "a.txt\nb.txt"
    changed = "mine.txt\nnew/mine.txt"
    assert work.git("diff-tree", "-r", "--name-only", "main", f"{branch}^") == changed
    assert work.git("show", f"{branch}:b.txt") == "mine\nnew"
    assert (whole(work), work.head()) == (before, head)
    work.git("stash", "-u", "-q")
    work.git("merge", "-q", branch)


def test_all_constraints_that_are_violated_are_told(work: Repo) -> None:
    work.config(
        f'{CONFIG}[headless]\nmax_files = 1\nmax_lines = 3\nallow = ["a.txt"]\ndeny = ["b*"]\n'
    )
    work.commit_all("limits")
    command = agent(work, "seq 9 > a.txt; echo b > b.txt", "rm b.txt; echo good > a.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    for told in (
        "max_files: 2 files changed, at most 1",
        "max_lines: 11 lines changed, at most 3",
        "allow: only a.txt may change, not b.txt",
        "deny: must not change: b.txt",
    ):
        assert told in prompts(work)[1]
        assert f"gitgates: {told}" in (done.stdout + done.stderr).decode()
    assert statuses(work)[0] == {"constraints": "failed"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "turn", "told"),
    [
        (
            "max_files = 1",
            "echo good > a.txt; echo b > b.txt",
            "max_files: 2 files changed, at most 1",
        ),
        ("max_lines = 3", "seq 9 > a.txt", "max_lines: 10 lines changed, at most 3"),
        ('allow = ["a.txt"]', "echo b > b.txt", "allow: only a.txt may change, not b.txt"),
        ('deny = ["b*"]', "echo b > b.txt", "deny: must not change: b.txt"),
    ],
)
def test_constraints_are_told_before_gates_run(
    work: Repo, setting: str, turn: str, told: str
) -> None:
    work.config(f"{CONFIG}[headless]\n{setting}\n")
    work.commit_all("limits")
    command = agent(work, turn, "rm -f b.txt; echo good > a.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert told in prompts(work)[1]
    assert f"gitgates: {told}" in (done.stdout + done.stderr).decode()
    assert statuses(work)[0] == {"constraints": "failed"}


def test_what_is_denied_twice_ends_the_run(work: Repo) -> None:
    work.config(f'{CONFIG}[headless]\ndeny = ["b*"]\n')
    work.commit_all("limits")
    command = agent(work, "echo b > b.txt", "echo c > b.txt", "rm b.txt; echo good > a.txt")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"changed files that `deny` matches in two attempts" in done.stdout
    assert work.git("status", "--porcelain") == ""


@pytest.mark.samples(1)
@pytest.mark.parametrize("moves", ["git commit -qam gate", "git switch -qc other"])
def test_a_gate_that_moves_head_ends_the_run(work: Repo, moves: str) -> None:
    work.config(CONFIG.replace("grep -q good a.txt", f"{moves}"))
    work.commit_all("moves")
    head = work.head()
    done = headless(work, "go", "--agent-command", agent(work, "echo good > a.txt"))
    assert done.returncode == 1
    assert b"a gate moved HEAD" in done.stdout
    assert (work.head(), work.git("branch", "--show-current")) == (head, "main")
    assert left(work) == []


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("sed -i s/FIXME/TODO/ a.txt", 1, b"the gates still failed"),  # lint has seen FIXME
        ("sed -i s/FIXME/fixed/ a.txt", 0, b"all gates passed"),
        ("echo more >> a.txt", 1, b"the gates passed, but changed files each time"),
    ],
)
def test_what_a_gate_changes_is_checked_again(
    work: Repo, command: str, status: int, said: bytes
) -> None:
    fixer = f'command = "{command}"\nwrites = true'
    work.config(CONFIG.replace('command = "test ! -e broken"', fixer))
    work.commit_all("fixer")
    turn = agent(work, "echo good FIXME > a.txt")
    done = headless(work, "go", "--max-retries", "0", "--agent-command", turn)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert said in done.stdout
    assert work.git("show", "HEAD:a.txt") == ("bad" if status else "good fixed")


@pytest.mark.thorough
def test_what_an_agent_left_running_is_ended(work: Repo) -> None:
    mark = f"{time.time()}"
    command = agent(work, f"echo good > a.txt; sh -c 'sleep 600; echo {mark}' &")
    began = time.monotonic()
    assert headless(work, "go", "--agent-command", command).returncode == 0
    assert time.monotonic() - began < 60
    assert subprocess.run(["pgrep", "-f", mark], check=False).returncode == 1


def test_the_commit_is_on_a_new_branch(work: Repo) -> None:
    command = agent(work, "echo good > a.txt")
    done = headless(work, "go", "--branch", "fix", "--agent-command", command)
    assert done.returncode == 0, done.stderr
    assert b" on fix\n" in done.stdout
    assert work.git("branch", "--show-current") == "main"
    assert work.git("log", "-1", "--format=%s", "main") == "first"
    assert work.git("show", "fix:a.txt") == "good"
    assert left(work) == []


@pytest.mark.thorough
def test_a_failed_run_leaves_no_branch(work: Repo) -> None:
    command = agent(work, "echo worse > a.txt")
    done = headless(work, "go", "--branch", "fix", "--max-retries", "0", "--agent-command", command)
    assert done.returncode == 1
    assert b"note:" not in done.stdout
    assert work.git("branch", "--format=%(refname:short)") == "main"


def test_without_gates_those_of_the_language_run(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("go.mod", "module x\n")
    repo.commit_all("first")
    tools = repo.path.parent / "bin"
    tools.mkdir()
    (tools / "go").write_text("#!/bin/sh\necho go $@\n")
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    done = headless(repo, "go", "--agent-command", agent(repo, "echo x > x.go"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert statuses(repo) == [{"Run tests": "passed", "Build": "passed"}]


def refused(repo: Repo, *args: str) -> str:
    """Return why a run did not begin; nothing has changed then."""
    before = whole(repo)
    done = headless(repo, "go", *args)
    assert done.returncode not in (0, 1, 2, 70), done
    assert whole(repo) == before
    return f"{done.returncode}: {done.stderr.decode()}"


def test_what_cannot_begin_says_why(work: Repo) -> None:
    command = ("--agent-command", agent(work, "echo good > a.txt"))
    assert "64: gitgates: TASK is empty" in (
        f"{(done := headless(work, ' ', *command)).returncode}: {done.stderr.decode()}"
    )
    assert "are mutually exclusive" in refused(work, "--agent", "claude", *command)
    assert "--branch main: already exists" in refused(work, "--branch", "main", *command)
    assert "not a valid branch name" in refused(work, "--branch", "a..b", *command)
    # Git has no branch `x` beside `x/y`.
    work.git("branch", "x/y")
    assert "74: " in refused(work, "--branch", "x", *command)
    assert left(work) == []


def test_without_any_gate_nothing_begins(repo: Repo) -> None:
    repo.write("a", "a\n")
    repo.commit_all("first")
    text = refused(repo, "--agent-command", agent(repo, "true"))
    assert text.startswith("78: ")
    assert "no gates are configured" in text


def started(repo: Repo, *args: str) -> subprocess.Popen[bytes]:
    """Start a run; return its process when something of it has made `agent/ready`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gitgates", "headless", "go", *args],
        cwd=repo.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    ready = repo.path.parent / "agent/ready"
    until = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)]
)
def test_an_interrupted_run_is_a_failed_one(work: Repo, number: int) -> None:
    work.write("dirty.txt", "dirty\n")
    before = whole(work)
    command = agent(work, "echo worse > a.txt; touch $AGENT/ready; sleep 600")
    process = started(work, "--agent-command", command)
    assert b"nothing to recover" in work.gitgates("recover").stdout
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert b"gitgates headless: interrupted by a signal\nyour working tree is as you left it" in out
    assert (whole(work), left(work)) == (before, [])
    assert work.git("show", f"refs/gitgates/failed/{result(work)['execution_id']}:a.txt") == "worse"


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("place", ["agent", "gate", "commit hook", "after the commit"])
def test_after_a_kill_nothing_has_changed_and_the_rest_is_tidied_up(
    work: Repo, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT", str(work.path.parent / "agent"))
    wait = "touch $AGENT/ready; sleep 600"
    if place == "gate":
        work.config(CONFIG.replace("test ! -e broken", wait))
        work.commit_all("wait")
    elif place != "agent":
        name = "pre-commit" if place == "commit hook" else "post-commit"
        hook = work.path / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\n{wait}\n")
        hook.chmod(0o755)
    work.write("dirty.txt", "dirty\n")
    work.git("add", "dirty.txt")
    work.write("dirty.txt", "and more\n")
    work.git("branch", "spare")
    before = whole(work)
    turn = "echo good > a.txt; git branch -qD spare"
    command = agent(work, f"{turn}; {wait}" if place == "agent" else turn)
    process = started(work, "--agent-command", command)
    process.kill()
    process.communicate(timeout=30)
    assert whole(work) == before
    git = work.path / ".git"
    run = next((git / "gitgates/headless").iterdir()).name
    # As the git that commits leaves them.
    names = (f"refs/heads/gitgates/{run}.lock", "packed-refs.lock", "packed-refs.new")
    locks = [git / name for name in (*names, f"worktrees/{run}/index.lock")]
    other = git / "refs/heads/other.lock"
    for lock in (*locks, other):
        lock.touch()
    for verb in (("doctor",), ("recover", "--list")):
        found = work.gitgates(*verb).stdout.decode()
        assert f"the headless run {run} was killed" in found
        assert "gitgates recover" in found
    tidied = work.gitgates("gc" if place == "gate" else "recover")
    assert tidied.returncode == 0, tidied.stderr
    said = tidied.stdout.decode()
    assert f"the headless run {run} was killed" in said
    assert not [lock for lock in locks if lock.exists()]
    assert other.exists()
    other.unlink()
    assert whole(work) == before
    assert work.git("rev-parse", "spare") == work.head()
    if place == "after the commit":
        assert f"it had passed; its commit is on gitgates/{run}: git merge gitgates/{run}" in said
        assert left(work) == [f"refs/heads/gitgates/{run}"]
        kept = f"gitgates/{run}"
    else:
        assert f"its work is kept as refs/gitgates/failed/{run}: gitgates runs restore" in said
        assert left(work) == []
        kept = f"refs/gitgates/failed/{run}"
    assert work.git("show", f"{kept}:a.txt") == "good"
    assert b"nothing to recover" in work.gitgates("recover").stdout


@pytest.mark.thorough
def test_the_page_shows_hostile_output_as_text(work: Repo) -> None:
    hostile = work.write("hostile", "<script>alert(1)</script>\x1b[31m{{ 7*7 }}")
    work.config(CONFIG.replace("grep -q good a.txt", f"cat {hostile.name}; exit 1"))
    work.commit_all("hostile")
    command = agent(work, "echo 1 > a.txt")
    headless(work, "<b>do</b>", "--max-retries", "0", "--agent-command", command)
    page = next((work.path / ".git/gitgates/runs").glob("*/report.html")).read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ 7*7 }}" in page
    assert "&lt;b&gt;do&lt;/b&gt;" in page
    assert not [found for found in ("<script", "\x1b", "http://", "https://") if found in page]
