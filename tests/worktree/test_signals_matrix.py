"""Whatever signal comes, to whomever and when: nothing is lost, nothing is left running."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from conftest import Repo
from process_support import has_ended, is_running, wait_for
from worktree_state import whole

GATE = 'echo $$ > "$OUT/new"; mv "$OUT/new" "$OUT/gate"; [ -e "$OUT/quick" ] || sleep 60'
HIDING = ["guardian 1", "lay-out 1", "journal 1", "move-aside 1", "move-aside 2", "show 1"]
HIDING += ["show 2", "hidden 1"]
RESTORING = ["take-out 1", "put-back 1", "take-out 2", "put-back 2", "forget 1"]
KINDS = {
    "plain": ([], [*HIDING, "gate", *RESTORING]),
    "all": (["-a"], ["guardian 1", "journal 1", "hidden 1", "gate", "forget 1"]),
    "paths": (["--", "c"], [*HIDING, "gate", *RESTORING]),
}
TARGETS = ["us", "group", "git"]
SIGNALS = {
    "int": [signal.SIGINT],
    "int-twice": [signal.SIGINT, signal.SIGINT],
    "term": [signal.SIGTERM],
    "hup": [signal.SIGHUP],
    "kill": [signal.SIGKILL],
}
# What a person types beside a commit. None of it destroys unstaged work by itself; what does
# (`reset --hard`) is held in test_restored.py at the moments that matter.
BESIDE = (
    ("stash",),
    ("stash", "--keep-index"),
    ("checkout", "-q", "other"),
    ("reset", "-q"),
    ("reset", "-q", "--keep", "HEAD~1"),
    ("rebase", "-q", "--autostash", "other"),
    ("add", "-p"),
    ("commit", "-qnm", "beside", "a"),
)


@pytest.fixture
def armed(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with a staged, an unstaged, a deleted and a partly staged file."""
    monkeypatch.setenv("OUT", str(tmp_path))
    repo.config(f"[gates.slow]\ncommand = '''{GATE}'''\n[hooks.pre-commit]\ngates = ['slow']\n")
    for name in ("a", "b", "c"):
        repo.write(name, f"{name} committed\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.shim("pre-commit")
    repo.write("c", "c staged\n")
    repo.git("add", "c")
    repo.write("a", b"a \xff unstaged\r\n")
    (repo.path / "a").chmod(0o700)
    repo.write("b", "b unstaged\n")
    return repo


def hook_of(git: int) -> int:
    """Return the process of our hook, which is the only child of git."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        children = Path(f"/proc/{git}/task/{git}/children").read_text().split()
        if children:
            return int(children[0])
    raise AssertionError("git has started nothing")


def strike(
    repo: Repo,
    tmp: Path,
    args: list[str],
    step: str,
    target: str,
    blow: str,
    beside: tuple[str, ...] = (),
) -> None:
    """Commit, wait for the step, send the signals, and wait until all has settled.

    `beside`: what the person has git do meanwhile, in another terminal.
    """
    for name in ("reached", "go", "gate", "quick"):
        (tmp / name).unlink(missing_ok=True)
    env = dict(os.environ)
    if step != "gate":
        env["GITGATES_PAUSE_AT"] = f"{step} {tmp}"
        (tmp / "quick").touch()
    process = subprocess.Popen(
        ["git", "commit", "-qm", "x", *args],
        cwd=repo.path,
        env=env,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(tmp / ("gate" if step == "gate" else "reached"), process)
    hook = hook_of(process.pid)
    if beside:
        repo.ask("git", *beside, stdin=b"y\n" * 9)
    for number in SIGNALS.get(blow, []):
        try:
            if target == "group":
                os.killpg(process.pid, number)
            else:
                os.kill(hook if target == "us" else process.pid, number)
        except ProcessLookupError:
            pass
        if len(SIGNALS[blow]) > 1:
            time.sleep(0.02)
    (tmp / "go").touch()
    process.communicate(timeout=30)
    settle(repo, hook)


def settle(repo: Repo, hook: int) -> None:
    end = time.monotonic() + 15
    while is_running(hook) or (repo.path / ".git/gitgates/rescue").exists():
        assert time.monotonic() < end, "not settled"
        time.sleep(0.005)


needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="finds processes through /proc"
)


def in_pairs() -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield kind, target, signal and steps, so each two of them come together.

    With a plain commit, each two of target, signal and step do; with the other kinds, each step
    comes once, with another target and signal each time.
    """
    for number, (target, blow) in enumerate(itertools.product(TARGETS, SIGNALS)):
        first = TARGETS.index(target) + list(SIGNALS).index(blow)
        for kind, (_args, known) in KINDS.items():
            if kind == "plain":
                steps = [s for n, s in enumerate(known, first) if n % len(TARGETS) == 0]
            else:
                steps = [s for n, s in enumerate(known) if n * 4 % 15 == number]
            if steps:
                yield kind, target, blow, steps


# What a person types, to us alone; and what a loss of power does, to all. The rest is thorough.
FIRST = [("paths", "us", "int"), ("plain", "group", "kill")]
PAIRS = sorted(in_pairs(), key=lambda case: case[:3] not in FIRST)


@pytest.mark.samples(2, "nightly")
@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("kind", "target", "blow", "steps"), PAIRS)
def test_nothing_is_lost(
    armed: Repo, tmp_path: Path, kind: str, target: str, blow: str, steps: list[str]
) -> None:
    lose_nothing(armed, tmp_path, kind, steps, target, blow)


@pytest.mark.nightly
@needs_proc
@pytest.mark.parametrize("blow", SIGNALS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_at_no_step_is_anything_lost(
    armed: Repo, tmp_path: Path, kind: str, target: str, blow: str
) -> None:
    lose_nothing(armed, tmp_path, kind, KINDS[kind][1], target, blow)


def lose_nothing(
    armed: Repo, tmp_path: Path, kind: str, steps: list[str], target: str, blow: str
) -> None:
    args = KINDS[kind][0]
    before = whole(armed)
    head = armed.head()
    for step in steps:
        strike(armed, tmp_path, args, step, target, blow)
        where = (kind, target, blow, step)
        if (tmp_path / "gate").exists():
            assert has_ended(int((tmp_path / "gate").read_text())), where
        if armed.head() != head:  # git had gone past the point at which it can be held up
            armed.git("reset", "-q", "--soft", head)
            continue
        lock = armed.path / ".git/index.lock"
        end = time.monotonic() + 20  # on a busy machine; it takes milliseconds
        while step != "guardian 1" and lock.exists() and time.monotonic() < end:
            time.sleep(0.005)
        if (target, blow, step) == ("group", "kill", "guardian 1") and kind != "plain":
            # Nobody of ours was there yet, or lived: git's lock is git's to explain, and it does.
            assert b"remove the file manually" in armed.commit().stderr
            lock.unlink()
        assert not lock.exists(), where
        assert whole(armed) == before, where
    (tmp_path / "quick").touch()
    done = armed.commit("next", *args)
    assert done.returncode == 0, done.stderr
    assert armed.git("fsck", "--strict") == ""


def beside_in_pairs() -> Iterator[ParameterSet]:
    """Yield command, step and signal: each command with some steps, each step with some commands.

    All of them come to pass in `make thorough`.
    """
    steps = [*HIDING[2:], "gate", *RESTORING]
    blows = ["", *SIGNALS]
    for number, (beside, step) in enumerate(itertools.product(BESIDE, steps)):
        case = beside, step, blows[number % len(blows)] or ("term" if step == "gate" else "")
        marks = [pytest.mark.slow] if number % 5 == 0 else [pytest.mark.thorough]
        yield pytest.param(*case, marks=marks, id=f"{' '.join(beside)}, {step}, {case[2] or 'no'}")


@pytest.mark.samples(2, "nightly")
@needs_proc
@pytest.mark.parametrize(("beside", "step", "blow"), list(beside_in_pairs()))
def test_nothing_is_lost_to_git_commands_beside(
    armed: Repo, tmp_path: Path, beside: tuple[str, ...], step: str, blow: str
) -> None:
    armed.git("config", "gc.auto", "0")
    armed.git("branch", "other", armed.git("commit-tree", "-m", "o", "-p", "HEAD", "HEAD^{tree}"))
    armed.git("commit", "-qnm", "second", "--allow-empty", "--", "pyproject.toml")
    unstaged = [b"a \xff unstaged\r\n", b"b unstaged\n"]
    strike(armed, tmp_path, [], step, "group", blow, beside)
    armed.gitgates("recover")
    armed.gitgates("doctor")
    for text in unstaged:
        assert is_somewhere(armed, text), (text, armed.git("status", "--short"))


@needs_proc
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.thorough if seed < 6 else pytest.mark.nightly)
        for seed in range(24)
    ],
)
def test_nothing_is_lost_at_random_moments(armed: Repo, tmp_path: Path, seed: int) -> None:
    """Git commands in a loop beside commits, one of which is killed at some moment."""
    chance = random.Random(seed)
    armed.git("branch", "other", armed.git("commit-tree", "-m", "o", "-p", "HEAD", "HEAD^{tree}"))
    (tmp_path / "quick").touch()
    process = subprocess.Popen(
        ["git", "commit", "-qm", "x"],
        cwd=armed.path,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for beside in chance.choices(BESIDE, k=3):
        time.sleep(chance.uniform(0, 0.08))
        armed.ask("git", *beside, stdin=b"y\n" * 9)
    if seed % 2:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, chance.choice(list(SIGNALS.values()))[0])
    process.wait(timeout=30)
    end = time.monotonic() + 15
    while (armed.path / ".git/gitgates/rescue").exists():
        assert time.monotonic() < end, "not settled"
        time.sleep(0.005)
    armed.gitgates("recover")
    for text in (b"a \xff unstaged\r\n", b"b unstaged\n"):
        assert is_somewhere(armed, text), (seed, text)


def is_somewhere(repo: Repo, text: bytes) -> bool:
    """Return whether a text is in the tree, in what is kept, or in what git reaches."""
    found = [*repo.path.rglob("*"), *(repo.path / ".git/gitgates/kept").rglob("*")]
    own = repo.path / ".git"
    for path in found:
        is_ours = own in path.parents and own / "gitgates/kept" not in path.parents
        if path.is_file() and not is_ours and path.read_bytes() == text:
            return True
    blob = repo.ask("git", "hash-object", "--stdin", stdin=text).stdout.decode().strip()
    # A rebase that has stopped keeps what it has stashed in no reference.
    autostash = own / "rebase-merge/autostash"
    more = [autostash.read_text().strip()] if autostash.exists() else []
    known = ("--all", "--reflog", "--indexed-objects", "--objects", *more)
    return blob in repo.git("rev-list", *known)
