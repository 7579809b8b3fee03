"""Commands under strace: what they do is what they do without it, and what they read is seen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from observed_support import Observer, command_of, needs_strace

from gitgates.observed.command import observed, privileged, why_not, why_not_here
from gitgates.observed.reads import read_output
from gitgates.observed.settled import interpreters
from gitgates.proc.processes import Capture, Child, Group, SignalPipe, group_lives
from gitgates.proc.traced import command_has_ended, end_left, left_running
from gitgates.store.files import read_or_empty

needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

SAME = {
    "an exit status": "echo out; echo err >&2; exit 7",
    "a signal": "kill -SEGV $$",
    "bytes": r"printf '\377\000\n'",
    "no program": "exec /nowhere/at/all",
    "its name, and what is open": 'echo "$0" "$@"; ls /proc/self/fd',
    "a child that is killed": "sh -c 'kill -KILL $$'; echo $?",
    "signals that are blocked and ignored": "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status",
    "a descendant that writes when its parent has ended": "(sleep 0.05; echo late) & exit 3",
}


@needs_strace
@pytest.mark.samples(4)
@pytest.mark.parametrize("case", SAME)
def test_it_does_the_same(tmp_path: Path, case: str) -> None:
    command = command_of("sh", "-c", SAME[case], "a name", "x", cwd=tmp_path)
    assert _ending(observed(command, str(tmp_path / "out")).argv) == _ending(command.argv)


def _ending(argv: tuple[str, ...]) -> tuple[int, bytes, bytes]:
    ended = subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return ended.returncode, ended.stdout, ended.stderr


def _start(group: Group, script: str, tmp_path: Path) -> Child:
    command = observed(command_of("sh", "-c", script, cwd=tmp_path), str(tmp_path / "out"))
    child = group.start(command, 60.0, Capture(10_000))
    assert isinstance(child, Child)
    _until(tmp_path / "started")
    return child


def _until(path: Path) -> None:
    until = time.monotonic() + 30
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert path.exists()


@needs_strace
def test_it_ends_as_it_wants_when_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitgates.proc.processes.GRACE_S", 60.0)
    runs = "while ! grep -q sleep /proc/$!/comm; do :; done"
    script = f"trap 'echo asked; exit 5' TERM; sleep 300 & {runs}; : >started; wait"
    with SignalPipe() as signals, Group(signals) as group:
        child = _start(group, script, tmp_path)
        group.end_all()
        assert group.wait() is child
    assert (child.ending().exit_status, child.capture.captured()[0]) == (5, b"asked\n")


@needs_strace
def test_a_killed_strace_leaves_no_process(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 300 & : >started; while :; do sleep 300; done"
    with SignalPipe() as signals, Group(signals) as group:
        child = _start(group, script, tmp_path)
        os.kill(child.pid, signal.SIGKILL)
        assert group.wait() is child
    assert child.ending().signal == signal.SIGKILL
    assert not group_lives(child.pid)


@needs_strace
def test_it_is_known_to_run_where_the_kernel_has_no_list_of_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str) -> bytes:
        return b"" if path.endswith("/children") else read_or_empty(path)

    monkeypatch.setattr("gitgates.proc.traced.read_or_empty", read)
    with SignalPipe() as signals, Group(signals) as group:
        child = _start(group, ": >started; exec sleep 300", tmp_path)
        assert left_running(child.pid)
        assert not command_has_ended(child.pid)


@needs_strace
def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    script = "setsid sleep 300 >/dev/null 2>&1 & echo $! >pid; exit 3"
    command = observed(command_of("sh", "-c", script, cwd=tmp_path), str(tmp_path / "out"))
    with subprocess.Popen(command.argv, cwd=tmp_path) as strace:
        until = time.monotonic() + 30
        while not command_has_ended(strace.pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert left_running(strace.pid) == {int((tmp_path / "pid").read_text())}
        end_left(strace.pid)
        assert strace.wait(30) == 3
        assert not command_has_ended(strace.pid)


@needs_strace
def test_a_process_that_is_killed_is_seen_to_end(tmp_path: Path) -> None:
    found = Observer(tmp_path, tmp_path).run("sh", "-c", "yes | head -1; sh -c 'kill -9 $$'; :")
    assert (found.unreusable, found.spoilt) == ("", "")


def test_why_a_command_cannot_be_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    env = {"PATH": str(tmp_path / "bin")}
    no_strace = "strace is not installed: install the package `strace`"
    assert why_not(command_of("true", cwd=tmp_path, env=env)) == no_strace
    assert why_not_here(env) == no_strace
    _script(tmp_path / "bin" / "strace", "exit 0")
    _script(tmp_path / "bin" / "tool", "exit 0")
    assert why_not(command_of("tool", cwd=tmp_path, env=env)) == ""
    assert why_not(command_of("other", cwd=tmp_path, env=env)) == "`other` cannot be run"
    monkeypatch.setattr("sys.platform", "darwin")
    assert why_not(command_of("tool", cwd=tmp_path, env=env)) == "only Linux has strace"


SAYS = {
    "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted": (
        "ptrace(2) is not permitted: give the container SYS_PTRACE, or set yama.ptrace_scope to 1"
    ),
    "strace: invalid system call 'openat2'": (
        "strace is too old: install version 5.11 or a newer one"
    ),
    "strace: unrecognized option '--seccomp-bpf'": (
        "this strace has no --seccomp-bpf: install version 5.11 or a newer one"
    ),
    "strace: no": "strace does not work here: strace: no",
}


@pytest.mark.parametrize("says", SAYS)
def test_why_nothing_can_be_observed_here(tmp_path: Path, says: str) -> None:
    _script(tmp_path / "strace", f'echo "{says}" >&2; exit 1')
    assert why_not_here({"PATH": str(tmp_path)}) == SAYS[says]


def _script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@needs_strace
def test_here_it_can_be_observed() -> None:
    assert why_not_here(dict(os.environ)) == ""


def test_programs_that_get_privileges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = _script(tmp_path / "tool", "exit 0")
    why = f"runs {tool}, which gets privileges that strace prevents"
    assert privileged(str(tool)) == ""
    tool.chmod(0o4755)
    assert privileged(str(tool)) == ""  # they are ours already
    monkeypatch.setattr("os.geteuid", lambda: tool.stat().st_uid + 1)
    assert privileged(str(tool)) == why
    tool.chmod(0o755)
    assert privileged(str(tool)) == ""
    monkeypatch.setattr("os.listxattr", lambda _path: ["security.capability"])
    assert privileged(str(tool)) == why
    assert privileged("/nowhere") == ""


def test_interpreters(tmp_path: Path) -> None:
    inner = _script(tmp_path / "inner", "exit 0")
    outer = tmp_path / "outer"
    outer.write_text(f"#! {inner} -x\n")
    first, shell, *loaders = interpreters(str(outer))
    assert (first, shell, [os.path.isfile(loader) for loader in loaders]) == (
        str(inner),
        "/bin/sh",
        [True],
    )
    assert "ld" in loaders[0]
    outer.write_text("#!sub/tool\n")
    assert [*interpreters(str(outer))] == ["sub/tool"]
    assert [*interpreters(str(tmp_path / "no"))] == []
    for head in (b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 600):
        outer.write_bytes(head)
        assert [*interpreters(str(outer))] == []


@needs_compiler
@pytest.mark.slow
def test_a_loader_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    loader = f"{tmp_path}/loader"
    Path(loader).touch()
    argv = ["gcc", f"-Wl,--dynamic-linker={loader}", "-o", "a", "a.c"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    assert [*interpreters(str(tmp_path / "a"))] == [loader]


@needs_strace
def test_a_command_that_cannot_be_started_is_run_again(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_bytes(b"\x00")
    tool.chmod(0o755)
    assert Observer(tmp_path, tmp_path).run(str(tool)).spoilt == (
        "it could not be started under strace"
    )


PYTHON = {
    "threads": "import threading as t; t = t.Thread(target=open, args=['a']); t.start(); t.join()",
    "a folder of all threads": (
        "import os, threading; t = threading.Thread(target=os.chdir, args=['sub'])\n"
        "t.start(); t.join(); open('../a')"
    ),
    "vfork, in another folder": (
        "import subprocess; subprocess.run(['/bin/cat', '../a'], cwd='sub', check=True)"
    ),
    "posix_spawn": "import os; os.waitpid(os.posix_spawn('/bin/cat', ['cat', 'a'], {}), 0)",
    "a thread that runs a program": (
        "import os, threading, time\n"
        "t = threading.Thread(target=os.execv, args=['/bin/cat', ['cat', 'a']]); t.start()\n"
        "time.sleep(60)"
    ),
    "a forked child in its own folder": (
        "import os\nif os.fork(): os.wait()\nelse: os.chdir('sub'); open('../a')"
    ),
    "a folder by its descriptor": (
        "import os; os.fchdir(os.open('sub', os.O_RDONLY)); open('../a')"
    ),
    "below a descriptor": "import os; os.open('a', os.O_RDONLY, dir_fd=os.open('.', os.O_RDONLY))",
    "only whether it is there": "import os; os.stat('a')",
    "mapped": "import mmap; f = open('a', 'r+b'); mmap.mmap(f.fileno(), 0)[:3]",
}


@needs_strace
@pytest.mark.slow
@pytest.mark.samples(3)
@pytest.mark.parametrize("case", PYTHON)
def test_python(tmp_path: Path, case: str) -> None:
    root, own = tmp_path / "root", tmp_path / "own"
    (root / "sub").mkdir(parents=True)
    own.mkdir()
    (root / "a").write_text("abc")
    observer = Observer(root, own)
    found = observer.settled(sys.executable, "-SEsc", PYTHON[case])
    assert observer.status == 0
    assert observer.difference(found) == ""
    (root / "a").write_text("abd")
    assert observer.difference(found).endswith("a changed")


@needs_strace
@needs_compiler
@pytest.mark.slow
def test_a_sanitizer_that_cannot_bear_it_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-fsanitize=address", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    found = Observer(tmp_path, tmp_path).run("./a")
    assert found.spoilt == "starts a process that must not be traced, as sanitizers do"


CALLS_OF_32_BITS = r"""
static char name[] = "/etc/hostname", absent[] = "/etc/nowhere", room[256];
static int call(int number, long a, long b, long c)
{
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
    return result;
}
int main(void)
{
    call(5, (long)name, 0, 0);             /* open */
    call(195, (long)absent, (long)room, 0); /* stat64 */
    return 0;
}
"""


@needs_strace
@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="calls of another processor")
def test_calls_of_32_bits(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(CALLS_OF_32_BITS)
    subprocess.run(["gcc", "-w", "-no-pie", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    found = Observer(tmp_path, tmp_path).run("./a")
    assert found.states["/etc/hostname"].startswith("file ")
    assert found.states["/etc/nowhere"] == "-"


@needs_strace
@pytest.mark.skipif(os.geteuid() != 0, reason="root alone reads what nobody may")
def test_a_program_that_may_be_run_and_not_read(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    shutil.copy("/bin/cat", tool)
    tool.chmod(0o711)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o755)
    output = tmp_path / "out"
    output.touch()
    output.chmod(0o666)
    command = observed(command_of(str(tool), "/etc/hostname", cwd=tmp_path), str(output))
    subprocess.run(command.argv, user=65534, group=65534, stdout=subprocess.DEVNULL, check=False)
    seen = read_output(output.read_text().splitlines(), str(tmp_path))
    assert seen.unreusable == "runs a program whose memory strace must not read"
