"""A queue of tasks: each is done once, whatever is killed, and whenever."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from test_headless import left

from gitgates.features.headless.tasks import read_tasks

CONFIG = """\
[gates.test]
command = "sh {folder}/step.sh gate; grep -q good a.txt"
[hooks.headless]
gates = ["test"]
max_retries = 1
"""
# One step of a task: it is written down, and where a file says so, it goes on for ever. That no
# other process of the task is at the same step is what the lock shows.
STEP = """\
kind=$1 branch=$(git branch --show-current)
exec 9>{folder}/at-"$(echo "$branch" | tr / -)"
flock -n 9 || kind="AT ONCE"
echo "$kind $branch" >> {folder}/steps
while [ -e "{folder}/hold-$kind" ]; do sleep 0.05 9>&-; done
"""
AGENT = """\
words=$(head -n 1)
cat > /dev/null
sh {folder}/step.sh agent
case $words in *good*) echo good > a.txt ;; *) echo "$words" > a.txt ;; esac
echo "$words" >> done.txt
case $words in *commit*) git add -A; git commit -q --no-verify -m own ;; esac
echo "did it"
"""
HOOKS = {"pre-commit": "commit", "post-commit": "committed"}
# The lock on the branch is held; killed now, git leaves it behind.
REFS_HOOK = """\
#!/bin/sh
[ "$1" = prepared ] && grep -q refs/heads/ && exec sh {folder}/step.sh ref
exit 0
"""


class Queue:
    """A repository, a file of tasks, and an agent that writes down what it does."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self.folder, self.file = repo, folder, folder / "tasks.toml"
        folder.mkdir()
        (folder / "step.sh").write_text(STEP.format(folder=folder))
        (folder / "agent.sh").write_text(AGENT.format(folder=folder))
        for name, kind in HOOKS.items():
            hook = repo.path / ".git/hooks" / name
            hook.write_text(f"#!/bin/sh\nexec sh {folder}/step.sh {kind}\n")
            hook.chmod(0o755)
        repo.config(CONFIG.format(folder=folder))
        repo.write("a.txt", "bad\n")
        repo.commit_all("first")
        (folder / "steps").write_text("")
        self.head = repo.head()

    def tasks(self, *prompts: str) -> None:
        """Write the file of tasks."""
        tables = (f'[[tasks]]\nid = "t{n}"\nprompt = "{p}"\n' for n, p in enumerate(prompts))
        self.file.write_text("".join(tables))

    def args(self, *more: str) -> tuple[str, ...]:
        agent = f"sh {self.folder}/agent.sh"
        return "headless", "--tasks", str(self.file), "--agent-command", agent, *more

    def run(self, *more: str) -> subprocess.CompletedProcess[bytes]:
        """Work on the queue to its end."""
        return self.repo.gitgates(*self.args(*more))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "gitgates", *self.args(*more)],
            cwd=self.repo.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def report(self, *more: str) -> dict[str, dict[str, Any]]:
        done = self.run("--format", "json", *more)
        document = json.loads(done.stdout)
        return {row["id"]: row for row in document["tasks"]}

    def steps(self) -> list[str]:
        return (self.folder / "steps").read_text().splitlines()

    def told(self) -> str:
        """Return the steps up to now, and what tasks have printed."""
        logs = (self.repo.path / ".git/gitgates/queues").glob("*/*.log")
        return "\n".join([*self.steps(), *(path.read_text() for path in logs)])

    def hold(self, kind: str, *, on: bool = True) -> None:
        """Have steps of a kind go on for ever, or end."""
        file = self.folder / f"hold-{kind}"
        file.touch() if on else file.unlink(missing_ok=True)

    def is_done_once(self, *branches: str) -> None:
        """Check that each task has one commit, and nothing else is left."""
        for branch in branches:
            commits = self.repo.git("log", "--format=%s", f"{self.head}..{branch}").splitlines()
            assert len(commits) == 1, (branch, commits)
            assert self.repo.git("show", f"{branch}:done.txt").count("\n") == 0  # one line
        assert not [step for step in self.steps() if step.startswith("AT ONCE")]
        assert (left(self.repo), worktrees()) == ([], [])


def worktrees() -> list[Path]:
    """Return the worktrees of runs."""
    return list(Path(os.environ["XDG_CACHE_HOME"]).glob("gitgates/*/headless/*"))


@pytest.fixture
def queue(repo: Repo, tmp_path: Path) -> Queue:
    return Queue(repo, tmp_path / "queue")


def until(condition: Any, what: str, told: Any = str) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, f"{what}: {told()}"
        time.sleep(0.01)


def below(pid: int) -> list[int]:
    """Return a process and all that it has started, and that still runs."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [pid]
    for one in found:
        found += [child for child, parent in pairs if parent == one]
    return found


def kill_now(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def arguments(pid: int) -> bytes:
    """Return the arguments of a process; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# git fails to list worktrees while another git adds or removes one.
GIT = """\
#!/bin/sh
case " $* " in
    *" worktree add "* | *" worktree remove "*)
        mkdir {folder}/at-worktrees || echo "AT ONCE $*" >> {folder}/steps
        sleep 0.3
        {git} "$@"
        status=$?
        rmdir {folder}/at-worktrees
        exit $status
esac
exec {git} "$@"
"""


@pytest.mark.slow
def test_each_task_has_a_branch_and_one_report_tells_of_all(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = queue.folder / "bin/git"
    git.parent.mkdir()
    git.write_text(GIT.format(folder=queue.folder, git=shutil.which("git")))
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    queue.tasks("make it good", "make it worse")
    done = queue.run("--jobs", "2")
    assert done.returncode == 1
    text = done.stdout.decode()
    assert "gitgates headless: 1 of 2 tasks passed" in text
    assert "t1: its work: gitgates runs restore " in text
    rows = queue.report()
    assert [row["status"] for row in rows.values()] == ["passed", "failed"]
    assert rows["t1"]["outcome"] == "the gates still failed when no retry was left"
    assert rows["t1"]["attempts"] == 2
    assert queue.repo.git("show", f"{rows['t1']['failed_ref']}:a.txt") == "make it worse"
    assert rows["t0"]["commit"] == queue.repo.git("rev-parse", "headless/t0")
    queue.is_done_once("headless/t0")
    assert (queue.repo.head(), queue.repo.git("status", "--porcelain")) == (queue.head, "")
    before = queue.steps()
    assert queue.run().returncode == 1  # nothing is done again
    assert queue.steps() == before
    check_report_that_cannot_be_read(queue)
    assert queue.steps() == before


def check_report_that_cannot_be_read(queue: Queue) -> None:
    """Check that it is named, and how to go on without it."""
    [path] = (queue.repo.path / ".git/gitgates/queues").glob("*/report.json")
    for damaged in (b"", b"[]", b"{", b'{"tasks": [{"task": 1}]}'):
        path.write_bytes(damaged)
        done = queue.run()
        assert done.returncode == 73, done
        assert f"{path}: " in done.stderr.decode()
        assert f"To start all tasks again: rm {path}" in done.stderr.decode()


@pytest.mark.thorough
def test_failed_and_changed_tasks_can_be_done_again(queue: Queue) -> None:
    queue.tasks("make it good", "make it worse")
    assert queue.run().returncode == 1
    assert queue.run("--retry-failed").returncode == 1
    assert Counter(queue.steps())["agent headless/t1"] == 4
    queue.tasks("make it good", "make it good now")
    assert queue.run().returncode == 0
    assert Counter(queue.steps())["agent headless/t0"] == 1
    queue.is_done_once("headless/t0", "headless/t1")


@pytest.mark.thorough
def test_as_many_at_once_as_are_asked_for(queue: Queue) -> None:
    queue.tasks(*["good"] * 4)
    queue.hold("agent")
    run = queue.start("--jobs", "3")
    until(lambda: len(queue.steps()) >= 3, "three tasks at once")
    assert Counter(step.split()[0] for step in queue.steps()) == {"agent": 3}
    busy = queue.run()
    assert busy.returncode == 75
    assert b"another process is running these tasks" in busy.stderr
    queue.hold("agent", on=False)
    assert run.wait(60) == 0
    run.communicate()
    queue.is_done_once(*[f"headless/t{n}" for n in range(4)])


# One with a single task; `make nightly` has all of them, with two at once.
_KILLS = [
    ("all", "ref", 1),
    *(
        (killed, at, 2)
        for killed in ("all", "queue", "task")
        for at in ("agent", "gate", "commit", "ref", "committed")
    ),
]


@pytest.mark.slow
@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize(("killed", "at", "count"), _KILLS)
def test_after_a_kill_each_task_is_done_once(
    queue: Queue, at: str, killed: str, count: int
) -> None:
    queue.tasks(*["good one", "good two"][:count])
    names = [f"headless/t{number}" for number in range(count)]
    hook = queue.repo.path / ".git/hooks/reference-transaction"
    hook.write_text(REFS_HOOK.format(folder=queue.folder))
    hook.chmod(0o755)
    queue.hold(at)
    run = queue.start("--jobs", "2")
    until(lambda: sum(step.startswith(f"{at} ") for step in queue.steps()) == count, at, queue.told)
    started = below(run.pid)
    tasks = [pid for pid in started if b"--queued" in arguments(pid)]
    assert len(tasks) == count
    for pid in {"all": started, "queue": [run.pid], "task": tasks}[killed]:
        kill_now(pid)
    out, _ = run.communicate(timeout=60)
    until(lambda: not any(map(lives, started)), "everything has ended")
    queue.hold(at, on=False)
    again = queue.run("--jobs", "2")
    assert again.returncode == 0, (out, again.stdout, again.stderr)
    queue.is_done_once(*names)
    counted = Counter(queue.steps())
    for task in names:
        # What was committed is finished, and what was not begun has not cost anything.
        assert counted[f"agent {task}"] == (1 if at == "committed" else 2)
    assert all(row["status"] == "passed" for row in queue.report().values())


@pytest.mark.thorough
@pytest.mark.slow
def test_a_killed_attempts_work_is_kept(queue: Queue) -> None:
    queue.tasks("good one")
    queue.hold("gate")
    run = queue.start()
    until(lambda: "gate headless/t0" in queue.steps(), "the gate")
    for pid in below(run.pid):
        kill_now(pid)
    run.communicate(timeout=60)
    queue.hold("gate", on=False)
    # What a git leaves behind that is killed while the work is being kept.
    [state] = (queue.repo.path / ".git/gitgates/headless").iterdir()
    failed = queue.repo.path / ".git/refs/gitgates/failed"
    failed.mkdir(parents=True)
    for lock in (state / "index.lock", failed / f"{state.name}.lock"):
        lock.touch()
    again = queue.run()
    assert again.returncode == 0, again.stdout.decode()
    ref = again.stdout.decode().partition("its work is kept as ")[2].partition(":")[0]
    assert queue.repo.git("show", f"{ref}:a.txt") == "good"


def kill_at(queue: Queue, kind: str) -> Path:
    """Kill all of a task's processes at a step; return its worktree."""
    queue.tasks("good one")
    queue.hold(kind)
    run = queue.start()
    until(lambda: f"{kind} headless/t0" in queue.steps(), kind)
    for pid in below(run.pid):
        kill_now(pid)
    run.communicate(timeout=60)
    queue.hold(kind, on=False)
    [path] = worktrees()
    return path


@pytest.mark.thorough
@pytest.mark.slow
def test_what_a_git_leaves_that_is_killed_beginning_a_task_is_removed(queue: Queue) -> None:
    """It was making the branch, or the worktree, or was deleting the branch afterwards."""
    path = kill_at(queue, "agent")
    queue.repo.git("worktree", "remove", "--force", str(path))
    queue.repo.git("branch", "-D", "headless/t0")
    git = queue.repo.path / ".git"
    half = git / "worktrees" / path.name
    half.mkdir(parents=True)
    (half / "locked").write_text("initializing")
    names = ("refs/heads/headless/t0.lock", "packed-refs.lock", "packed-refs.new", "config.lock")
    locks = [git / name for name in names]
    locks[0].parent.mkdir(exist_ok=True)
    for lock in locks:
        lock.touch()
    (git / "HEAD.lock").touch()  # nothing of the task locks the HEAD of the repository
    again = queue.run()
    assert again.returncode == 0, again.stdout.decode()
    queue.is_done_once("headless/t0")
    assert not [lock for lock in (*locks, half) if lock.exists()]
    assert (git / "HEAD.lock").exists()


@pytest.mark.thorough
@pytest.mark.samples(1, "nightly")
@pytest.mark.slow
def test_a_lock_of_before_the_task_is_left_to_whoever_holds_it(queue: Queue) -> None:
    kill_at(queue, "agent")
    lock = queue.repo.path / ".git/config.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    queue.run()
    assert lock.exists()


@pytest.mark.thorough
@pytest.mark.samples(1, "nightly")
@pytest.mark.slow
def test_what_a_git_leaves_that_is_killed_after_the_commit_is_removed(queue: Queue) -> None:
    """It was reading the commit into the index, or removing files."""
    path = kill_at(queue, "committed")
    git = queue.repo.path / ".git"
    (git / "worktrees" / path.name / "index.lock").touch()
    (path / "a.txt").unlink()
    again = queue.run()
    assert again.returncode == 0, again.stdout.decode()
    queue.is_done_once("headless/t0")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_queue_that_is_killed_again_and_again_comes_to_its_end(queue: Queue) -> None:
    names = [f"headless/t{n}" for n in range(4)]
    queue.tasks(*["good"] * 4)
    for kill in range(1, 30):
        before = len(queue.steps())
        run = queue.start("--jobs", "2")
        until(lambda: len(queue.steps()) >= before + kill % 6 + 1 or run.poll() is not None, "it")  # noqa: B023 - it is called here
        ended = run.poll()
        for pid in below(run.pid) if ended is None and kill % 3 else [run.pid]:
            kill_now(pid)
        run.communicate(timeout=60)
        if ended is not None:
            break
    assert ended == 0
    queue.is_done_once(*names)
    # Nothing was done after the commit: whoever had committed was finished.
    for name in names:
        own = [step.split()[0] for step in queue.steps() if step.endswith(f" {name}")]
        assert "agent" not in own[own.index("committed") :] if "committed" in own else own[-1:]


@pytest.mark.thorough
def test_a_signal_ends_the_queue_and_the_next_call_goes_on(queue: Queue) -> None:
    queue.tasks("good one", "good two")
    queue.hold("agent")
    run = queue.start()
    until(lambda: "agent headless/t0" in queue.steps(), "the agent")
    started = below(run.pid)
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130, out
    until(lambda: not any(map(lives, started)), "everything has ended")
    assert b"t0    interrupted" in out
    assert b"t1    waiting" in out
    queue.hold("agent", on=False)
    assert queue.run().returncode == 0
    queue.is_done_once("headless/t0", "headless/t1")


@pytest.mark.thorough
@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize("killed", ["queue interrupted", "cleaning up killed"])
def test_what_the_agent_had_committed_is_kept_and_done_again(queue: Queue, killed: str) -> None:
    """It commits by itself, so nothing is left in its worktree when it is ended."""
    queue.tasks("good: commit it")
    queue.hold("committed")
    run = queue.start()
    until(lambda: "committed headless/t0" in queue.steps(), "the commit")
    own = queue.repo.git("rev-parse", "headless/t0")
    if killed == "queue interrupted":
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
        assert run.returncode == 130
    else:  # a call that has kept what there was, and removed the worktree
        for pid in below(run.pid):
            kill_now(pid)
        run.communicate(timeout=60)
        [path] = worktrees()
        run_id = path.name
        queue.repo.git("update-ref", f"refs/gitgates/failed/{run_id}", own)
        queue.repo.git("worktree", "remove", "--force", str(path))
    queue.hold("committed", on=False)
    again = queue.run()
    assert again.returncode == 0, again.stdout
    queue.is_done_once("headless/t0")
    refs = "for-each-ref", "--format=%(refname)", "--contains", own, "refs/gitgates/failed"
    assert len(queue.repo.git(*refs).splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("holds_lock", [pytest.param(True, marks=pytest.mark.thorough), False])
def test_what_nobody_watches_any_more_is_ended_by_the_next_call(
    queue: Queue, *, holds_lock: bool
) -> None:
    """All is killed, also the watchdogs; what the agent has put into another session lives on."""
    stays = queue.folder / "stays.py"
    command = f"setsid -f sh -c 'echo $$ > {queue.folder}/pid; sleep 600'"
    run_it = f"subprocess.run({command!r}, shell=True, close_fds={not holds_lock})"
    stays.write_text(f"import subprocess\n{run_it}\n")
    detached = f"{sys.executable} {stays}\n"
    agent = queue.folder / "agent.sh"
    agent.write_text(detached + agent.read_text())
    queue.tasks("good one")
    queue.hold("agent")
    run = queue.start()
    until(lambda: "agent headless/t0" in queue.steps(), "the agent")
    started = below(run.pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    run.communicate(timeout=60)
    left = int((queue.folder / "pid").read_text())
    assert lives(left)
    queue.hold("agent", on=False)
    agent.write_text(agent.read_text().replace(detached, ""))
    assert queue.run().returncode == 0
    until(lambda: not lives(left), "what nobody watched has ended")
    queue.is_done_once("headless/t0")


@pytest.mark.thorough
def test_a_branch_that_is_there_is_an_error_of_its_task_alone(queue: Queue) -> None:
    queue.tasks("good one", "good two")
    queue.repo.git("branch", "headless/t0")
    done = queue.run()
    assert done.returncode == 1
    row = queue.report()["t0"]
    assert row["status"] == "error"
    assert row["outcome"] == "--branch headless/t0: already exists"
    assert queue.repo.git("rev-parse", "headless/t0") == queue.head
    queue.repo.git("branch", "-D", "headless/t0")
    assert queue.run().returncode == 0
    tables = [f'[[tasks]]\nid = "{name}"\nprompt = "good"\n' for name in ("a..b", "t9")]
    queue.file.write_text("".join(tables))
    assert queue.run().returncode == 1
    assert [(row["status"], row["outcome"]) for row in queue.report().values()] == [
        ("error", "--branch headless/a..b: not a valid branch name"),
        ("passed", "all gates passed"),
    ]


@pytest.mark.thorough
def test_a_task_may_be_called_as_the_report_is(queue: Queue) -> None:
    queue.file.write_text('[[tasks]]\nid = "report"\nprompt = "good one"\n')
    assert queue.run().returncode == 0
    assert queue.report()["report"]["status"] == "passed"
    assert Counter(queue.steps())["agent headless/report"] == 1


@pytest.mark.thorough
def test_what_no_gate_has_checked_is_done_once(queue: Queue) -> None:
    queue.repo.config(
        CONFIG.format(folder=queue.folder).replace("[hooks", 'files = ["*.py"]\n[hooks')
    )
    queue.repo.commit_all("files")
    queue.tasks("good one")
    assert queue.run().returncode == 1
    row = queue.report()["t0"]
    assert row["status"] == "failed"
    assert row["outcome"].endswith("so nothing was checked")
    assert queue.repo.git("show", f"{row['failed_ref']}:a.txt") == "good"
    assert Counter(queue.steps())["agent headless/t0"] == 1


WRONG = (
    ("", "tasks.toml: has no [[tasks]]. Try [[tasks]] with"),
    ("tasks = 3", "tasks.toml: tasks: got 3, expected an array of tables. Try [[tasks]] with"),
    ("[[tasks]\n", "tasks.toml: is not valid TOML: "),
    ("[[task]]\nid='a'\nprompt='b'", "tasks.toml: task: unknown key. Did you mean `tasks`?"),
    ("[[tasks]]\nprompt='b'", "tasks.toml: tasks[0]: has no `id`"),
    ("[[tasks]]\nid='a'", "tasks.toml: tasks.a: has no `prompt`"),
    ("[[tasks]]\nid='a/b'\nprompt='b'", 'tasks."a/b".id: got "a/b", expected 1 to 64 letters'),
    ("[[tasks]]\nid='a'\nprompt=' '", "tasks.a: has no `prompt`"),
    ("[[tasks]]\nid='a'\nprompts='b'", "tasks.a.prompts: unknown key. Did you mean `prompt`?"),
    ("[[tasks]]\nid='a'\nprompt='b'\nagent='x'", 'tasks.a.agent: got "x", expected'),
    ("[[tasks]]\nid='a'\nprompt='b'\nmax_retries=-1", "tasks.a.max_retries: got -1, expected"),
    ("[[tasks]]\nid='a'\nprompt_file='no'", "tasks.a.prompt_file: no: [Errno 2] No such file"),
    ("[[tasks]]\nid='a'\nprompt='b'\n" * 2, "tasks[1]: `a` is defined twice"),
)


def test_what_is_wrong_with_the_file_is_named(queue: Queue) -> None:
    for text, said in WRONG:
        queue.file.write_text(text)
        done = queue.repo.gitgates("headless", "--tasks", str(queue.file))
        assert done.returncode == 78, text
        assert said in done.stderr.decode()
    assert queue.steps() == []


def test_everything_that_is_wrong_is_told_at_once(queue: Queue) -> None:
    queue.file.write_text("[[tasks]]\nid = 3\n[[tasks]]\nprompt = 4\nmax_cost = 'much'\n")
    done = queue.repo.gitgates("headless", "--tasks", str(queue.file))
    assert done.stderr.count(b"tasks.3") == 2
    assert done.stderr.count(b"tasks.1") + done.stderr.count(b"tasks[1]") == 4


def test_the_example_of_the_docs_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/how-to/headless.md").read_text()
    (tmp_path / "tasks.toml").write_text(page.partition("```tasks\n")[2].partition("```")[0])
    (tmp_path / "drop-python-39.md").write_text("Drop it.\n")
    first, second = read_tasks(str(tmp_path / "tasks.toml"))
    assert (first.branch, first.max_cost) == ("headless/fix-rounding", None)
    assert (second.prompt, second.max_cost, second.budget_minutes) == ("Drop it.", 2.5, 30)


def test_options_for_one_task_are_refused(queue: Queue) -> None:
    queue.tasks("good")
    for option in ("--branch=x", "--message=x", "--junit=x", "x"):
        done = queue.repo.gitgates("headless", "--tasks", str(queue.file), option)
        assert done.returncode == 64, option
        assert b"are mutually exclusive" in done.stderr
    assert queue.repo.gitgates("headless", "x", "--jobs", "2").returncode == 64
