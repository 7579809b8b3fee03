"""Passes are reused while all that a gate has read is as it was: real gates, counted runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from observed_support import needs_strace
from reuse_support import BY_FILE, PROBE, WHOLE, Checker

from gitgates.core.types import Gate
from gitgates.git.repo import find_repo
from gitgates.store.proofs import durations
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import WorktreeSettings

pytestmark = needs_strace


@pytest.fixture(name="at")
def _at(repo: Repo, out: Path) -> Checker:
    repo.write("a.txt", "one\n")
    repo.write("sub/b.txt", "two\n")
    repo.write("tool.sh", "#!/bin/sh\n").chmod(0o755)
    (repo.path / "link").symlink_to("a.txt")
    repo.write(".gitignore", "*.log\n")
    repo.commit_all("first")
    return Checker(repo, out)


def ran(at: Checker, gate: Gate = WHOLE, **options: Any) -> int:
    """Run a gate that passes; return how many times it really ran."""
    (result,) = at.run(gate, **options)
    assert result.status == "passed"
    runs = len(at.log())
    assert bool(result.origin.reused) is (runs == 0)
    return runs


def proven(at: Checker, gate: Gate = WHOLE, **options: Any) -> None:
    """Run a gate until its pass is reused."""
    assert [ran(at, gate, **options) for _ in range(2)] == [1, 0]


def test_nothing_has_changed(at: Checker) -> None:
    proven(at)
    (result,) = at.run(WHOLE)
    assert result.origin.reused == "manual, 0 s ago"
    assert result.duration_s == 0


def test_never_unless_asked_for(at: Checker) -> None:
    assert [ran(at, WHOLE.changed(reuse=False)) for _ in range(2)] == [1, 1]


EDITS = {
    "edit": "echo 1st > a.txt",  # of the same size
    "an ignored file": "echo x > x.log",
    "mode": "chmod +x a.txt",
    "link to file": "rm link; printf a.txt > link",
    "rename": "mv a.txt c.txt",
    "deletion": "rm a.txt",
    "link": "ln -sfn tool.sh link",
    "new file": "touch new",
    "new file in a folder": "touch sub/new",
    "the program": 'echo "#" >> "$BIN/probe"',
}


@pytest.mark.samples(5)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_another_input(at: Checker, edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIN", str(at.bin))
    at.repo.write("untracked", "0\n")
    proven(at)
    assert at.repo.ask("sh", "-c", edit).returncode == 0
    proven(at)


def test_what_git_knows_makes_no_difference(at: Checker) -> None:
    at.repo.write("a.txt", "staged\n")
    proven(at)
    at.repo.git("add", "-A")
    assert ran(at) == 0
    at.repo.commit_all("second")
    assert ran(at) == 0
    at.repo.git("switch", "-qc", "other")
    (at.repo.path / "a.txt").touch()
    assert ran(at) == 0
    at.repo.git("checkout", "-q", "HEAD~")
    assert ran(at) == 1
    at.repo.git("checkout", "-q", "other")
    assert ran(at) == 0


OUTSIDE = {
    "a file": 'cat "$OUT/x/file"',
    "one that is not there": 'cat "$OUT/x/none" || true',
    "a listing": 'ls "$OUT/x"',
    "a script of any name": 'sh "$OUT/x/mypy"',
    "through a link": "cat there/file",
    "another program": '"$OUT"/x/mypy',
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("command", OUTSIDE.values(), ids=OUTSIDE)
def test_outside_of_the_repository(at: Checker, command: str) -> None:
    folder = at.out / "x"
    folder.mkdir()
    (folder / "file").write_text("1")
    (folder / "mypy").write_text("#!/bin/sh\n")
    (folder / "mypy").chmod(0o755)
    (at.repo.path / "there").symlink_to(folder)
    gate = WHOLE.changed(command=f"echo >> $OUT/log; {command}")
    proven(at, gate)
    for name in ("file", "none", "mypy"):
        with (folder / name).open("a") as file:
            file.write("\n")
    assert ran(at, gate) == 1


def test_a_program_before_it_in_the_path(at: Checker) -> None:
    gate = WHOLE.changed(command=("probe",))
    before = at.out / "before"
    before.mkdir()
    at.path, at.bin = f"{at.bin}{os.pathsep}{at.path}", before
    proven(at, gate)
    at.tool("probe", PROBE)
    proven(at, gate)


OTHERS = {
    "argument": WHOLE.changed(command="probe x"),
    "folder": WHOLE.changed(working_dir="sub"),
    "list": WHOLE.changed(command=("probe",)),
    "env": WHOLE.changed(env=(("A", "b"),)),
    "name": WHOLE._replace(name="other"),
    "writes": WHOLE.changed(writes=True),
}


def test_another_definition(at: Checker) -> None:
    proven(at)
    for name, other in OTHERS.items():
        assert [ran(at, other) for _ in range(2)] == [1, 0], name
    assert ran(at) == 0


def test_variables(at: Checker) -> None:
    proven(at)
    for value in ("", "x"):
        proven(at, ANY_NAME=value)
    (result,) = at.run(WHOLE, COLUMNS="80", SSH_TTY="/dev/pts/1", CLAUDE_CODE_SSE_PORT="")
    at.log()
    assert result.status == "passed"
    assert ran(at, COLUMNS="81", SSH_TTY="/dev/pts/2", TERM_SESSION_ID="1") == 0
    gate = WHOLE.changed(command="probe $COLUMNS")
    proven(at, gate, COLUMNS="80")
    proven(at, gate, COLUMNS="81")


def test_failures_are_never_reused(at: Checker) -> None:
    at.repo.write("a.txt", "BAD")
    for _ in range(2):
        assert [result.status for result in at.run(WHOLE)] == ["failed"]
        assert len(at.log()) == 1
    at.repo.write("a.txt", "one\n")
    proven(at)


def test_a_failure_ends_older_passes(at: Checker) -> None:
    """Of a gate that depends on what does not count."""
    at.repo.write("tool.sh", 'test "$SSH_TTY" != bad\n')
    gate = WHOLE.changed(command="probe; sh tool.sh")
    for how in ("audit", "0"):
        proven(at, gate)
        assert at.run(gate, SSH_TTY="bad", GITGATES_REUSE=how)[0].status == "failed"
        at.log()


def test_gates_that_change_what_they_read(at: Checker) -> None:
    at.tool("probe", f"{PROBE}echo $$ > a.txt\n")
    for gate in (WHOLE, WHOLE.changed(writes=True)):
        assert [ran(at, gate) for _ in range(3)] == [1, 1, 1]
    assert "the pass of whole cannot be reused: it changes" in "".join(at.messages.texts)


def test_a_fixer_is_reused_once_nothing_is_left_to_fix(at: Checker) -> None:
    at.tool("probe", f"{PROBE}grep -q fixed a.txt || echo fixed > a.txt\n")
    assert [ran(at, WHOLE.changed(writes=True)) for _ in range(3)] == [1, 1, 0]


def test_what_a_gate_leaves_settles(at: Checker) -> None:
    """The first run makes a report, which the second one finds."""
    gate = WHOLE.changed(command="probe; cat report.log; echo done > report.log")
    assert [ran(at, gate) for _ in range(3)] == [1, 1, 0]
    at.repo.write("report.log", "else")
    assert ran(at, gate) == 1


def test_what_a_gate_kills_and_what_it_leaves_running(at: Checker) -> None:
    gate = WHOLE.changed(
        command="sleep 300 & kill -9 $!; setsid sleep 300 & echo $! > $OUT/pid; probe"
    )
    proven(at, gate)
    left = Path("/proc", (at.out / "pid").read_text().strip(), "cmdline")
    assert not left.exists() or not left.read_bytes()  # nobody may wait for it here
    assert os.listdir(at.repo.path / ".git/gitgates/strace") == []


def test_scratch(at: Checker) -> None:
    gate = WHOLE.changed(
        command="echo >> $OUT/log; cat a.txt data.log; date +%N > data.log", scratch=("data.log",)
    )
    assert [ran(at, gate) for _ in range(2)] == [1, 0]
    at.repo.write("a.txt", "1st\n")
    assert ran(at, gate) == 1
    assert [ran(at, gate.changed(scratch=())) for _ in range(3)] == [1, 1, 1]


def test_scratch_in_the_home_folder(at: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As npm does."""
    monkeypatch.setattr("gitgates.observed.environment._TEMPORARY", ())
    env = {"HOME": str(at.out), "TMPDIR": ""}
    log = 'mkdir -p "$HOME/.npm/logs"; date +%N > "$HOME/.npm/logs/$$"; ls "$HOME/.npm/logs"'
    gate = WHOLE.changed(command=f"echo >> $OUT/log; {log}")
    assert [ran(at, gate, **env) for _ in range(3)] == [1, 1, 1]
    gate = gate.changed(scratch=("~/.npm/logs",))
    assert [ran(at, gate, **env) for _ in range(2)] == [1, 0]


MEANWHILE = {
    "other content and back": "cp sub/b.txt $OUT/b; echo BAD > sub/b.txt; cp $OUT/b sub/b.txt",
    "new": "echo $$ > new",
    "the tool": 'cp -p "$BIN/probe" "$BIN/.new"; mv "$BIN/.new" "$BIN/probe"',
}


@pytest.mark.samples(1)
@pytest.mark.parametrize("change", MEANWHILE.values(), ids=MEANWHILE)
def test_something_changed_while_the_gate_ran(at: Checker, change: str) -> None:
    # By somebody else: a process that strace does not see.
    waits = f"{PROBE}touch $OUT/ready; while [ -e $OUT/ready ]; do sleep 0.01; done\n"
    at.tool("probe", waits)
    pid = os.fork()
    if not pid:
        while not (at.out / "ready").exists():
            time.sleep(0.01)
        os.chdir(at.repo.path)
        os.environ |= {"OUT": str(at.out), "BIN": str(at.bin)}
        os.system(change)
        os.unlink(at.out / "ready")
        os._exit(0)
    (result,) = at.run(WHOLE)
    os.waitpid(pid, 0)
    assert result.status == "passed"
    at.log()
    at.tool("probe", PROBE)
    assert ran(at) == 1


def test_max_age(at: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = WHOLE.changed(max_age_s=60.0)
    proven(at, gate)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 59)
    assert ran(at, gate) == 0
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert ran(at, gate) == 1


def test_worktrees_share_passes(at: Checker, tmp_path: Path) -> None:
    proven(at)
    for place in ("other", "deeper/one"):
        at.repo.git("worktree", "add", "-q", "--detach", str(tmp_path / place))
        (result,) = at.run(WHOLE, root=tmp_path / place)
        assert result.origin.reused.startswith(f"manual in {at.repo.path}, ")
    other = Repo(tmp_path / "other")
    other.write("a.txt", "1st\n")
    proven(at, root=other.path)
    assert ran(at) == 0
    at.repo.write("a.txt", "1st\n")
    assert ran(at) == 0
    assert at.log() == []


def _checked_out(at: Checker) -> Any:
    env = {**os.environ, "PATH": f"{at.bin}:{at.path}"}
    return check_out(find_repo(str(at.repo.path), env), "HEAD", WorktreeSettings())


def test_private_checkouts_share_passes(at: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is above the repository is then above them, too.
    monkeypatch.setenv("XDG_CACHE_HOME", str(at.out.parent / "cache"))
    proven(at)
    with _checked_out(at) as checkout:
        assert ran(at, checkout=checkout.repo) == 0
        Path(checkout.root_abs, "new").write_text("")
        proven(at, checkout=checkout.repo)
    at.repo.write("a.txt", "1st\n")
    at.repo.commit_all("second")
    with _checked_out(at) as checkout:
        proven(at, checkout=checkout.repo)
    assert ran(at) == 0


# Where a gate cannot be observed


def test_without_strace(at: Checker) -> None:
    tools = at.out.parent / "tools"
    tools.mkdir()
    for name in ("sh", "grep", "git", "echo", "cat"):
        (tools / name).symlink_to(f"/bin/{name}" if name != "git" else "/usr/bin/git")
    at.path = str(tools)
    assert [ran(at) for _ in range(2)] == [1, 1]
    said = (
        "the pass of whole cannot be reused: strace is not installed: install the package `strace`"
    )
    assert at.messages.texts == [said, said]
    declared = WHOLE.changed(name="declared", reuse="declared")
    assert [ran(at, declared) for _ in range(2)] == [1, 0]
    assert at.run(declared)[0].origin.reused == "manual, 0 s ago, as declared"


@pytest.fixture(name="blind")
def _blind(at: Checker, monkeypatch: pytest.MonkeyPatch) -> Checker:
    """Return the same where nothing can be observed."""
    monkeypatch.setattr("gitgates.engine.reuse.observing.why_not", lambda _command: "not here")
    return at


DECLARED = WHOLE.changed(reuse="declared")


def test_declared_tree(blind: Checker) -> None:
    proven(blind, DECLARED)
    blind.repo.write("a.txt", "1st\n")
    proven(blind, DECLARED)
    blind.repo.write("x.log", "git ignores it")
    assert ran(blind, DECLARED) == 0


def test_declared_inputs(blind: Checker) -> None:
    gate = DECLARED.changed(inputs=("a.txt",))
    proven(blind, gate)
    blind.repo.write("sub/b.txt", "1st\n")
    assert ran(blind, gate) == 0
    blind.repo.write("uv.lock", "")  # decides which packages there are
    proven(blind, gate)
    (blind.repo.path / "a.txt").unlink()
    assert [ran(blind, gate) for _ in range(2)] == [1, 1]
    assert "no file matches `a.txt` of `inputs`" in "".join(blind.messages.texts)


def test_declared_variables_and_files(blind: Checker, tmp_path: Path) -> None:
    config = tmp_path / "tool.conf"
    gate = DECLARED.changed(env_inputs=("ONE", "TWO_*"), reads=(str(config),))
    proven(blind, gate)
    assert ran(blind, gate, OTHER="x", ONEX="x", TWO="x") == 0
    proven(blind, gate, ONE="1")
    proven(blind, gate, TWO_A="1")
    config.write_text("x")
    proven(blind, gate)


def test_declared_failure_ends_the_pass(blind: Checker) -> None:
    gate = DECLARED.changed(command='probe; test -z "$BROKEN"')
    for how in ("audit", "0"):
        proven(blind, gate)
        (result,) = blind.run(gate, BROKEN="1", GITGATES_REUSE=how)
        assert result.status == "failed"
        blind.log()


# By file


def passed(at: Checker, *paths: str, gate: Gate = BY_FILE) -> list[str]:
    """Return the paths that a run by file passes to the gate."""
    at.run(gate, paths=paths)
    return " ".join(at.log()).split()


def test_by_file_only_changed_files_are_passed(at: Checker) -> None:
    names = tuple(f"f{number}.txt" for number in range(5))
    for name in names:
        at.repo.write(name, f"{name}\n")
    assert passed(at, *names) == [*names]
    assert passed(at, *names) == []
    (result,) = at.run(BY_FILE, paths=names)
    assert result.origin.reused == "5 of 5 files"
    at.repo.write("f3.txt", "f4.txt\n")
    (result,) = at.run(BY_FILE, paths=names)
    assert (result.origin.reused, at.log()) == ("4 of 5 files", ["f3.txt"])
    at.repo.write("f3.txt", "f3.txt\n")
    assert passed(at, *names) == []  # as it was in the beginning
    (at.repo.path / "f1.txt").chmod(0o755)
    assert passed(at, *names) == ["f1.txt"]


def test_by_file_after_a_change_of_what_all_depend_on(at: Checker) -> None:
    gate = BY_FILE.changed(command="cat probe.toml; probe-files")
    both = ("a.txt", "sub/b.txt")
    at.repo.write("probe.toml", "1st")
    assert passed(at, *both, gate=gate) == [*both]
    at.repo.write("other.md", "text")
    assert passed(at, *both, gate=gate) == []
    at.repo.write("probe.toml", "2nd")
    assert passed(at, *both, gate=gate) == [*both]


def test_by_file_a_failing_file_is_never_skipped(at: Checker) -> None:
    at.repo.write("a.txt", "BAD\n")
    both = ("a.txt", "sub/b.txt")
    for _ in range(2):
        assert passed(at, *both) == [*both]  # none of them is known to be right
    assert passed(at, "sub/b.txt") == ["sub/b.txt"]
    for _ in range(2):
        (result,) = at.run(BY_FILE, paths=both)
        assert (result.status, at.log()) == ("failed", ["a.txt"])
    at.repo.write("a.txt", "one\n")
    assert passed(at, *both) == ["a.txt"]


def test_by_file_where_nothing_is_observed(blind: Checker) -> None:
    assert passed(blind, "a.txt", "sub/b.txt", gate=BY_FILE.changed(inputs=())) != []
    assert passed(blind, "a.txt", "sub/b.txt", gate=BY_FILE.changed(inputs=())) == []
    blind.repo.write("a.txt", "1st\n")
    changed = passed(blind, "a.txt", "sub/b.txt", gate=BY_FILE.changed(inputs=()))
    assert changed == ["a.txt", "sub/b.txt"]


# Others


def test_state_that_cannot_be_written(at: Checker) -> None:
    folder = at.repo.path / ".git/gitgates/proofs"
    folder.mkdir(parents=True)
    (folder / "observed").write_text("in the way")
    assert [ran(at) for _ in range(2)] == [1, 1]
    assert "the pass of whole was not recorded for reuse: Not a directory" in at.messages.texts


def test_damaged_runs(at: Checker) -> None:
    proven(at)
    for path in (at.repo.path / ".git/gitgates/proofs/observed").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-1])
    proven(at)


def test_reuse_off(at: Checker) -> None:
    proven(at)
    assert ran(at, GITGATES_REUSE="0") == 1


@pytest.mark.slow
def test_durations_of_gates_that_ran(at: Checker) -> None:
    state = str(at.repo.path / ".git/gitgates")
    gate = WHOLE.changed(command="sleep 0.2; probe")
    at.run(gate)
    assert durations(state)["whole"] > 0.1
    before = durations(state)
    at.run(gate)
    assert durations(state) == before
