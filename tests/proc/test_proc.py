"""Processes end as they should, with all that they started, and no byte is lost."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from process_support import has_ended

from gitgates.core.types import Command, Ending
from gitgates.proc import processes as proc
from gitgates.proc.processes import Capture, SignalPipe

LIMIT = 4096


def run(
    tmp_path: Path, *argv: str, timeout_s: float = 20.0, limit: int = LIMIT, stdin: str = ""
) -> tuple[Ending | str, bytes, float]:
    """Run one program to its end; return how it ended, its output, and how long that took."""
    env = dict(os.environ)
    capture = Capture(limit, str(tmp_path / "logs/gate.log"))
    command = Command(argv=argv, cwd_abs=str(tmp_path), env=env, stdin_abs=stdin)
    started = time.monotonic()
    with SignalPipe() as signals, proc.Group(signals) as group:
        child = group.start(command, timeout_s, capture)
        if isinstance(child, str):
            return child, b"", 0.0
        assert group.wait() is child
    return child.ending(), capture.captured()[0], time.monotonic() - started


def sh(tmp_path: Path, text: str, timeout_s: float = 20.0) -> tuple[Ending | str, bytes, float]:
    return run(tmp_path, "/bin/sh", "-c", text, timeout_s=timeout_s)


def test_output_of_both_streams_comes_in_order(tmp_path: Path) -> None:
    ending, output, _ = sh(tmp_path, "echo one; echo two >&2; echo three; exit 7")
    assert (ending, output) == (Ending(exit_status=7), b"one\ntwo\nthree\n")


def test_arbitrary_bytes_survive(tmp_path: Path) -> None:
    everything = bytes(range(256)) * 3
    (tmp_path / "bytes").write_bytes(everything)
    ending, output, _ = sh(tmp_path, "cat bytes")
    assert (ending, output) == (Ending(exit_status=0), everything)
    assert (tmp_path / "logs/gate.log").read_bytes() == everything


def test_head_and_tail_are_kept_and_the_log_has_all(tmp_path: Path) -> None:
    ending, output, _ = run(tmp_path, "seq", "10000", limit=20)
    everything = (tmp_path / "logs/gate.log").read_bytes()
    assert ending == Ending(exit_status=0)
    assert everything == b"".join(b"%d\n" % n for n in range(1, 10001))
    left_out = len(everything) - 20
    assert (
        output == everything[:10] + b"\n[... %d bytes left out ...]\n" % left_out + everything[-10:]
    )


def test_a_silent_program_leaves_no_log(tmp_path: Path) -> None:
    sh(tmp_path, "true")
    assert not (tmp_path / "logs").exists()


def test_a_log_that_cannot_be_written_does_not_hurt(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    ending, output, _ = sh(tmp_path, "echo still here")
    assert (ending, output) == (Ending(exit_status=0), b"still here\n")


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert run(tmp_path, "cat")[:2] == (Ending(exit_status=0), b"")


def test_standard_input_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x" * 100)
    assert run(tmp_path, "wc", "-c", stdin=str(tmp_path / "in"))[1].strip() == b"100"


def test_the_terminal_is_refused_not_waited_for(tmp_path: Path) -> None:
    ending, _output, _ = sh(tmp_path, "read line < /dev/tty")
    assert isinstance(ending, Ending)
    assert ending.exit_status not in (None, 0)


def test_death_by_a_signal_is_told(tmp_path: Path) -> None:
    assert sh(tmp_path, "kill -SEGV $$")[0] == Ending(signal=signal.SIGSEGV)


@pytest.mark.slow
def test_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    text = "sleep 60 & echo $! > child; sleep 60"
    ending, _output, took = sh(tmp_path, text, timeout_s=0.3)
    assert ending == Ending(signal=signal.SIGTERM, timed_out=True)
    assert took < proc.GRACE_S
    assert has_ended(int((tmp_path / "child").read_text()))


@pytest.mark.slow
def test_who_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    text = "trap '' TERM; echo $$ > me; while :; do sleep 1; done"
    ending, _output, took = sh(tmp_path, text, timeout_s=0.2)
    assert ending == Ending(signal=signal.SIGKILL, timed_out=True)
    assert proc.GRACE_S < took < proc.GRACE_S + 2
    assert has_ended(int((tmp_path / "me").read_text()))


@pytest.mark.slow
def test_a_grandchild_that_holds_the_pipe_delays_us_by_the_grace_at_most(tmp_path: Path) -> None:
    text = "(trap '' TERM; echo $$; while :; do sleep 1; done) & echo $! > child; echo done"
    ending, output, took = sh(tmp_path, text)
    assert ending == Ending(exit_status=0)
    assert b"done\n" in output
    assert took < proc.GRACE_S + 1
    assert has_ended(int((tmp_path / "child").read_text()))


def test_a_polite_grandchild_is_ended_when_the_gate_is_done(tmp_path: Path) -> None:
    text = "sleep 60 > /dev/null 2>&1 & echo $! > child"
    ending, _output, took = sh(tmp_path, text)
    assert ending == Ending(exit_status=0)
    assert took < proc.GRACE_S
    assert has_ended(int((tmp_path / "child").read_text()))


def test_what_leaves_the_group_cannot_hold_us(tmp_path: Path) -> None:
    ending, output, took = sh(tmp_path, "setsid sleep 5 & echo on; sleep 0.05")
    assert (ending, output) == (Ending(exit_status=0), b"on\n")
    assert took < proc.GRACE_S


def test_a_tee_that_outlives_its_shell_may_finish(tmp_path: Path) -> None:
    ending, output, _ = sh(tmp_path, "(sleep 0.1; echo late) & echo early")
    assert (ending, output) == (Ending(exit_status=0), b"early\nlate\n")


def test_a_program_that_closes_its_output_goes_on(tmp_path: Path) -> None:
    assert sh(tmp_path, "exec >&- 2>&-; sleep 0.1; exit 4")[0] == Ending(exit_status=4)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("no-such-program-here",), "command not found: no-such-program-here"),
        (("./missing",), "command not found: ./missing"),
        (("./plain",), "not executable: ./plain (try chmod +x)"),
        (
            ("./no-interpreter",),
            "command not found: the interpreter in the first line of ./no-interpreter",
        ),
        (
            ("./no-first-line",),
            "not executable: ./no-first-line has no #! line and is not a program",
        ),
    ],
)
def test_why_it_could_not_be_started(tmp_path: Path, argv: tuple[str, ...], why: str) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    for name, text in (("no-interpreter", "#!/no/such/sh\n"), ("no-first-line", "true\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    assert run(tmp_path, *argv)[0] == why


def test_a_file_in_the_path_that_may_not_run_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(tmp_path, "tool")[0] == (f"not executable: {tmp_path}/tool (try chmod +x)")


def test_too_many_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    command = Command(("true",), str(tmp_path), dict(os.environ))
    with SignalPipe() as signals, proc.Group(signals) as group, monkeypatch.context() as patch:
        patch.setattr(os, "pipe", pipe)
        why = group.start(command, 5.0, Capture(LIMIT))
    assert why == "could not be started: true: Too many open files"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    env = dict(os.environ)
    command = Command(argv=("true",), cwd_abs=str(tmp_path / "gone"), env=env)
    with SignalPipe() as signals, proc.Group(signals) as group:
        why = group.start(command, 5.0, Capture(LIMIT))
    assert why == f"working_dir does not exist: {tmp_path}/gone"


INTERRUPTED = textwrap.dedent(
    """
    import os, sys
    from gitgates.proc.processes import Capture
    from gitgates.proc.processes import Group
    from gitgates.proc.processes import SignalPipe
    from gitgates.core.types import Command
    argv = ("/bin/sh", "-c", sys.argv[1])
    with SignalPipe() as signals, Group(signals) as group:
        group.start(Command(argv, os.getcwd(), dict(os.environ)), 60.0, Capture(99))
        child = group.wait()
        print(child.ending(), group.handle_signals(), flush=True)
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_our_own_signals_end_the_group(tmp_path: Path, number: signal.Signals) -> None:
    text = "sleep 60 & echo $$ $! > pids.new; mv pids.new pids; wait; wait"
    done, pids = interrupt(tmp_path, text, [number])
    assert done == f"{Ending(signal=15, ended_by_us=True)} {int(number)}\n".encode()
    assert all(map(has_ended, pids))


@pytest.mark.slow
def test_asked_twice_there_is_no_grace(tmp_path: Path) -> None:
    text = "trap '' TERM; echo $$ > pids.new; mv pids.new pids; while :; do sleep 1; done"
    started = time.monotonic()
    done, pids = interrupt(tmp_path, text, [signal.SIGINT, signal.SIGINT])
    assert done == f"{Ending(signal=9, ended_by_us=True)} 2\n".encode()
    assert time.monotonic() - started < proc.GRACE_S
    assert all(map(has_ended, pids))


def interrupt(tmp_path: Path, text: str, numbers: list[signal.Signals]) -> tuple[bytes, list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, text], cwd=tmp_path, stdout=subprocess.PIPE
    )
    while not (tmp_path / "pids").exists():
        assert process.poll() is None
        time.sleep(0.002)
    for number in numbers:
        process.send_signal(number)
        if len(numbers) > 1:
            time.sleep(0.3)  # two signals at once are one to the kernel
    output, _ = process.communicate(timeout=30)
    return output, [int(pid) for pid in (tmp_path / "pids").read_text().split()]
