"""The session journal: real files and processes, some of which are killed."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from together import run_together

from gitgates.store import log as logs
from gitgates.store.log import EventLock, Journal, file_name, session_journal, sessions


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return session_journal(str(tmp_path / "state"), "s1")


def start(program: str, *args: str) -> subprocess.Popen[bytes]:
    """Start a Python program; its arguments are in `args`."""
    head = "import os, sys, time\nfrom gitgates.store.log import Journal, EventLock\n"
    return subprocess.Popen(
        [sys.executable, "-c", f"{head}args = sys.argv[1:]\n{program}", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def said(process: subprocess.Popen[bytes]) -> bytes:
    """Return the next line of a program."""
    assert process.stdout
    return process.stdout.readline()


def end(process: subprocess.Popen[bytes]) -> bytes:
    """Let a program go on to its end; return the rest of what it says."""
    output, errors = process.communicate(b"\n", timeout=60)
    assert process.returncode == 0, errors
    return output


def facts_of(journal: Journal) -> list[dict[str, object]]:
    return [{k: v for k, v in fact.items() if k not in ("v", "t")} for fact in journal.read()]


def test_what_was_appended_is_read_in_order(journal: Journal) -> None:
    before = time.time()
    journal.append({"what": "a", "text": "é\n\udcff\0"}, {"what": "b"})
    journal.append({"what": "c", "list": [1, None, {"x": 0.5}]})
    assert facts_of(journal) == [
        {"what": "a", "text": "é\n\udcff\0"},
        {"what": "b"},
        {"what": "c", "list": [1, None, {"x": 0.5}]},
    ]
    assert journal.torn == 0
    first = journal.read()[0]
    assert first["v"] == 1
    assert before - 0.01 <= first["t"] <= time.time() + 0.01


def test_no_journal_has_no_facts(journal: Journal) -> None:
    assert (journal.read(), journal.torn) == ([], 0)
    assert not os.path.exists(os.path.dirname(journal.path_abs))


def test_only_the_owner_may_read_it(journal: Journal, tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        journal.append({"what": "a"})
    finally:
        os.umask(umask)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "state", tmp_path / "state/sessions", Path(journal.path_abs))
    }
    assert modes == {"state": 0o700, "sessions": 0o700, "s1.jsonl": 0o600}


def test_a_torn_line_is_dropped_and_the_next_append_repairs_it(journal: Journal) -> None:
    journal.append({"what": "a"})
    journal.append({"what": "lost", "text": "x" * 100})
    whole = Path(journal.path_abs).read_bytes()
    Path(journal.path_abs).write_bytes(whole[:-50])
    assert facts_of(journal) == [{"what": "a"}]
    assert journal.torn == 1
    journal.append({"what": "b"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "b"}]
    assert journal.torn == 1
    assert Path(journal.path_abs).read_bytes().count(b"\n") == 3


def test_a_line_that_only_lacks_its_end_is_whole(journal: Journal) -> None:
    journal.append({"what": "a"})
    Path(journal.path_abs).write_bytes(Path(journal.path_abs).read_bytes()[:-1])
    journal.append({"what": "b"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "b"}]


def test_garbage_is_passed_over(journal: Journal) -> None:
    journal.append({"what": "a"})
    with open(journal.path_abs, "ab") as file:
        file.write(b"garbage\n\n[1]\n3\nnull\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
        file.write(b'{"t": 2, "what": 3}\n{"what": "no time"}\n')
    journal.append({"what": "b"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "b"}]
    assert journal.torn == 8


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("0b6f-11_A", "0b6f-11_A"),
        ("", "unknown.session"),
        ("unknown", "unknown"),
        ("..", "__.00000000"),
        (".", "_.00000000"),
        ("../../x", "______x.00000000"),
        ("/etc/passwd", "_etc_passwd.00000000"),
        ("a\0b", "a_b.00000000"),
        ("a\n", "a_.00000000"),
        ("é😀\ud800", "___.00000000"),
        ("x" * 80, "x" * 80),
        ("x" * 5000, "x" * 80 + ".00000000"),
        ("a.jsonl", "a_jsonl.00000000"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_any_session_makes_a_file_name(session: str, name: str, tmp_path: Path) -> None:
    found = file_name(session)
    head, dot, tail = found.partition(".")
    is_hex = len(tail) == 8 and set(tail) <= set("0123456789abcdef")
    assert (f"{head}.00000000" if dot and is_hex else found) == name
    journal = session_journal(str(tmp_path), session)
    journal.append({"what": "a"})
    assert os.listdir(tmp_path / "sessions") == [f"{found}.jsonl"]
    assert sessions(str(tmp_path)) == [journal.path_abs]


def test_sessions_do_not_share_a_journal() -> None:
    ids = ["", "unknown", "a/b", "a_b", "a:b", "A_b", "x" * 80, "x" * 81, "x" * 82, "_", "/", "."]
    ids += [file_name("a/b"), file_name(""), file_name("x" * 81)]
    assert len({file_name(one) for one in ids}) == len(ids)


def test_the_newest_session_comes_last(tmp_path: Path) -> None:
    for place, name in enumerate(("b", "a", "c")):
        journal = session_journal(str(tmp_path), name)
        journal.append({"what": "a"})
        os.utime(journal.path_abs, ns=(place, place))
    (tmp_path / "sessions/b.0.lock").touch()
    (tmp_path / "sessions/gone.jsonl").symlink_to("nowhere")
    names = [path.rpartition("/")[2] for path in sessions(str(tmp_path))]
    assert names == ["b.jsonl", "a.jsonl", "c.jsonl"]
    assert sessions(str(tmp_path / "none")) == []


@pytest.mark.thorough
@pytest.mark.slow
def test_fifty_processes_at_once_lose_nothing(journal: Journal, tmp_path: Path) -> None:
    body = f"""
    from gitgates.store.log import Journal
    journal = Journal({journal.path_abs!r})
    for n in range(4):
        journal.append(*({{"what": "x", "by": by, "n": 3 * n + m, "pad": "p" * 3000 * m}}
                         for m in range(3)))
        seen = [f["n"] for f in journal.read() if f["by"] == by]
        assert seen == list(range(3 * n + 3)) and not journal.torn, (seen, journal.torn)
    """
    run_together(50, body, tmp_path)
    found: dict[object, list[object]] = {}
    for fact in facts_of(journal):
        found.setdefault(fact["by"], []).append(fact["n"])
    assert journal.torn == 0
    assert found == {str(n): list(range(12)) for n in range(50)}


def test_what_others_appended_meanwhile_is_read_with_what_is_appended(journal: Journal) -> None:
    other = Journal(journal.path_abs)
    assert [one["what"] for one in journal.append_and_read({"what": "a"})] == ["a"]
    other.append({"what": "b"})
    with open(journal.path_abs, "ab") as file:
        file.write(b'{"v": 1, "what": "to')
    assert [one["what"] for one in journal.append_and_read({"what": "c"})] == ["b", "c"]
    assert journal.torn == 1
    assert journal.read_new() == []
    other.append({"what": "d"})
    assert [one["what"] for one in journal.read_new()] == ["d"]
    assert facts_of(journal) == [{"what": name} for name in "abcd"]


@pytest.mark.parametrize("room", [0, 1, 60, 150])
def test_a_full_disk_leaves_the_journal_as_it_was(journal: Journal, room: int) -> None:
    journal.append({"what": "a"})
    whole = Path(journal.path_abs).read_bytes()
    program = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(whole) + room}, {len(whole) + room}))
try:
    Journal(args[0]).append({{"what": "b"}}, {{"what": "c", "pad": "p" * 1000}})
except OSError as error:
    print(error.errno, error.strerror)
"""
    answer = end(start(program, journal.path_abs)).decode()
    assert answer.split()[0] in ("27", "28"), answer  # EFBIG, ENOSPC
    assert Path(journal.path_abs).read_bytes() == whole
    journal.append({"what": "d"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "d"}]
    assert journal.torn == 0


def test_a_full_disk_below_a_torn_line(journal: Journal) -> None:
    journal.append({"what": "a"})
    with open(journal.path_abs, "ab") as file:
        file.write(b'{"v": 1, "what": "to')
    torn = Path(journal.path_abs).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(torn) + 5, hard))
        with pytest.raises(OSError, match=r"space|large"):
            journal.append({"what": "b"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert Path(journal.path_abs).read_bytes() == torn
    journal.append({"what": "c"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "c"}]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")
    with pytest.raises(OSError, match="Not a directory"):
        session_journal(str(tmp_path), "s").append({"what": "a"})
    with pytest.raises(OSError, match="Not a directory"):
        session_journal(str(tmp_path), "s").read()


HOLDS = """
import fcntl
fd = os.open(args[0], os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(fd, b'{"v": 1, "what": "ha') if args[1:] else None
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_lock_that_is_never_freed_hangs_nobody(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append({"what": "a"})
    monkeypatch.setattr(logs, "LOCK_WAIT_S", 0.05)
    holder = start(HOLDS, journal.path_abs)
    assert said(holder) == b"held\n"
    with pytest.raises(TimeoutError, match="another process holds its lock"):
        journal.append({"what": "b"})
    assert facts_of(journal) == [{"what": "a"}]
    end(holder)
    journal.append({"what": "c"})
    assert facts_of(journal) == [{"what": "a"}, {"what": "c"}]


def test_a_reader_waits_for_a_writer(journal: Journal) -> None:
    journal.append({"what": "a"})
    program = "print(len(Journal(args[0]).read()), flush=True)"
    holder = start(HOLDS, journal.path_abs)
    assert said(holder) == b"held\n"
    reader = start(f"print('at', flush=True)\n{program}", journal.path_abs)
    assert said(reader) == b"at\n"
    with open(journal.path_abs, "ab") as file:
        file.write(b'{"v": 1, "t": 1, "what": "ha')
        file.flush()
        file.write(b'lf"}\n')
    end(holder)
    assert end(reader) == b"2\n"


TURN = """
turn = EventLock(Journal(args[0]), "key")
print("asks", flush=True)
print(turn.acquire(float(args[1])), flush=True)
sys.stdin.readline()
turn.release()
"""


def test_the_second_waits_for_its_turn(journal: Journal) -> None:
    journal.append({"what": "a"})
    turn = EventLock(journal, "key")
    assert turn.acquire(0)
    assert turn.acquire(0)  # held already
    other = EventLock(journal, "other key")
    assert other.acquire(0)
    refused = start(TURN, journal.path_abs, "0")
    assert (said(refused), said(refused)) == (b"asks\n", b"False\n")
    end(refused)
    waiting = start(TURN, journal.path_abs, "60")
    assert said(waiting) == b"asks\n"
    turn.release()
    turn.release()
    assert said(waiting) == b"True\n"
    assert not turn.acquire(0)
    end(waiting)
    assert turn.acquire(0)
    turn.release()
    other.release()
    assert os.listdir(os.path.dirname(journal.path_abs)) == ["s1.jsonl"]


def test_a_holder_that_was_killed_frees_its_turn(journal: Journal) -> None:
    holder = start(TURN, journal.path_abs, "0")
    assert (said(holder), said(holder)) == (b"asks\n", b"True\n")
    turn = EventLock(journal, "key")
    assert not turn.acquire(0)
    holder.kill()
    holder.communicate()
    assert turn.acquire(5)
    turn.release()
    assert os.listdir(os.path.dirname(journal.path_abs)) == []


@pytest.mark.slow
def test_an_event_is_handled_by_one_process_at_a_time(journal: Journal, tmp_path: Path) -> None:
    body = f"""
    from gitgates.store.log import EventLock, Journal
    for _ in range(20):
        lock = EventLock(Journal({journal.path_abs!r}), "key\\ud800")
        assert lock.acquire(60)
        os.mkdir("in")
        os.rmdir("in")
        lock.release()
    """
    run_together(8, body, tmp_path)
    assert os.listdir(os.path.dirname(journal.path_abs)) == []


def test_a_killed_writer_frees_the_journal(journal: Journal) -> None:
    journal.append({"what": "a"})
    holder = start(HOLDS.replace("os.O_RDWR", "os.O_RDWR | os.O_APPEND"), journal.path_abs, "torn")
    assert said(holder) == b"held\n"
    holder.kill()
    holder.communicate()
    assert (facts_of(journal), journal.torn) == ([{"what": "a"}], 1)
    journal.append({"what": "b"})
    lines = Path(journal.path_abs).read_bytes().split(b"\n")
    assert json.loads(lines[-2])["what"] == "b"
    assert facts_of(journal) == [{"what": "a"}, {"what": "b"}]
