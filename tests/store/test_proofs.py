"""The log of proofs: whatever is damaged is no proof, and nothing grows without end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import pytest

from gitgates.store import proofs
from gitgates.store.proofs import (
    Proof,
    append,
    digest,
    durations,
    find_pass,
    note_durations,
    of_content,
    read_all,
)

PROOF = Proof(
    gate="lint",
    content=digest("content"),
    key=digest("key"),
    status="passed",
    time_s=1000.5,
    duration_s=0.25,
    hook="Stop",
    root_abs="/r",
)
FULL = PROOF._replace(
    status="failed",
    definition=digest("definition"),
    base="c" * 40,
    config="d",
    numbers={"cover\n": 80.5, "ü": -3},
    failures=(("f1", "tab\there"), ("f2", "\u202e \udcff")),
)


def find(folder: Path, proof: Proof = PROOF) -> Proof | None:
    return find_pass(str(folder), proof.gate, proof.content, proof.key)


def the_file(folder: Path) -> Path:
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_digest() -> None:
    texts = ("", "a", "ab", "b", b"\xff", "\udcff")
    digests = [digest(*parts) for parts in (("a", "b"), ("ab",), ("", "ab"), ("b", "a"), ())]
    assert len(set(digests)) == 5
    assert {len(digest(text)) for text in texts} == {32}
    assert digest("\udcff") == digest(b"\xff")


def test_a_pass_is_found_for_all_of_its_key(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    append(str(tmp_path), [PROOF])
    assert find(tmp_path) == PROOF
    other = digest("other")
    for proof in (PROOF._replace(gate=other), PROOF._replace(content=other)):
        assert find(tmp_path, proof) is None
    assert find(tmp_path, PROOF._replace(key=other)) is None
    assert [*read_all(str(tmp_path))] == [PROOF]


def test_all_gates_of_a_run_are_one_append(tmp_path: Path) -> None:
    run = [FULL, PROOF._replace(gate="test"), PROOF._replace(key="", gate="other")]
    append(str(tmp_path), run)
    append(str(tmp_path), [])
    assert the_file(tmp_path).read_bytes().count(b"\n") == 3
    assert of_content(str(tmp_path), PROOF.content) == run
    assert of_content(str(tmp_path), "c" * 40) == []  # which is in a line, as something else
    assert [*read_all(str(tmp_path))] == run


def test_failures_that_are_too_long_are_not_known(tmp_path: Path) -> None:
    many = tuple((f"{number:016x}", "x" * 100) for number in range(1000))
    append(str(tmp_path), [FULL._replace(failures=many)])
    assert [*read_all(str(tmp_path))] == [FULL._replace(failures=())]


def test_what_follows_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks: dict[str, tuple[int, bytes]] = {}
    added = [PROOF._replace(time_s=float(number)) for number in range(20)]
    for number, proof in enumerate(added):
        append(str(tmp_path), [proof])
        append(str(tmp_path), [PROOF._replace(content=digest(str(number)))])
        if number % 3 == 2:
            found = [one for one in read_all(str(tmp_path), marks) if one.content == PROOF.content]
            assert found == added[number - 2 : number + 1]
            assert [*read_all(str(tmp_path), marks)] == []
    path = tmp_path / f"proofs/{digest(PROOF.content)[:2]}"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])  # as while it is being written
    (whole_line,) = (one for one in read_all(str(tmp_path), marks) if one.content == PROOF.content)
    assert whole_line == added[18]
    path.write_bytes(whole)
    assert [*read_all(str(tmp_path), marks)] == added[19:]
    monkeypatch.setattr(proofs, "_LARGEST", 1024)
    append(str(tmp_path), [FULL])  # its older half goes
    assert FULL in [*read_all(str(tmp_path), marks)]
    assert [*read_all(str(tmp_path), marks)] == []


def test_the_newest_pass(tmp_path: Path) -> None:
    newer = PROOF._replace(time_s=2000.0, hook="pre-commit")
    for proof in (PROOF, newer):
        append(str(tmp_path), [proof])
    assert find(tmp_path) == newer
    append(str(tmp_path), [PROOF._replace(status="failed", time_s=3000.0)])
    assert find(tmp_path) is None


def test_a_failure_is_no_pass(tmp_path: Path) -> None:
    append(str(tmp_path), [PROOF._replace(status="failed")])
    assert find(tmp_path) is None


@pytest.mark.parametrize("name", ["a b", "ü", "tab\tpassed", "line\nfeed", "nul\0", "\udcff"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    append(str(tmp_path), [PROOF._replace(root_abs=name)])
    found = find(tmp_path)
    assert found
    assert (found.gate, found.key) == (PROOF.gate, PROOF.key)
    gate = PROOF._replace(gate=name)
    append(str(tmp_path), [gate])
    assert find(tmp_path, gate) in (None, gate)  # never that of another gate


def test_every_truncation_and_every_flipped_bit_is_a_miss(tmp_path: Path) -> None:
    append(str(tmp_path), [PROOF])
    path = the_file(tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        assert find(tmp_path) is None
    for at in range(len(whole) - 1):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            assert find(tmp_path) is None
    path.write_bytes(whole[:-1])  # the line feed alone is missing
    assert find(tmp_path) == PROOF


def test_a_damaged_line_takes_no_other_with_it(tmp_path: Path) -> None:
    append(str(tmp_path), [FULL, PROOF._replace(gate="torn"), PROOF])
    path = the_file(tmp_path)
    first, torn, last = path.read_bytes().splitlines(keepends=True)
    for size in range(len(torn) - 1):
        path.write_bytes(first + torn[:size] + b"\n" + last)
        assert [*read_all(str(tmp_path))] == [FULL, PROOF]
        path.write_bytes(first + torn[:size] + last)
        assert [*read_all(str(tmp_path))] in ([FULL], [FULL, PROOF])


def test_a_torn_line_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    append(str(tmp_path), [PROOF])
    path = the_file(tmp_path)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        append(str(tmp_path), [PROOF])
        assert find(tmp_path) == PROOF


def test_garbage(tmp_path: Path) -> None:
    append(str(tmp_path), [PROOF])
    path, chance = the_file(tmp_path), random.Random(1)
    for size in (1, 100, 100_000):
        path.write_bytes(chance.randbytes(size))
        assert find(tmp_path) is None
        assert [*read_all(str(tmp_path))] == []
        append(str(tmp_path), [PROOF])
        assert find(tmp_path) == PROOF
    path.write_bytes(b"\t\n" * 1000 + b"\0" * 1000)
    assert find(tmp_path) is None


def test_a_line_of_a_newer_version_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(proofs, "_VERSION", "5")
        append(str(tmp_path), [PROOF])
    assert find(tmp_path) is None
    append(str(tmp_path), [PROOF._replace(hook="older")])
    found = find(tmp_path)
    assert found
    assert found.hook == "older"


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_something_else_in_the_place_of_a_file(tmp_path: Path, kind: str) -> None:
    append(str(tmp_path), [PROOF])
    path = the_file(tmp_path)
    path.unlink()
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to("/dev/zero")
        case _:
            os.mkfifo(path)
    assert find(tmp_path) is None
    assert [*read_all(str(tmp_path))] == []
    with pytest.raises(OSError):  # noqa: PT011 - which one is the system's
        append(str(tmp_path), [PROOF])


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "_LARGEST", 4096)
    for number in range(200):
        append(str(tmp_path), [PROOF._replace(time_s=float(number))])
        assert the_file(tmp_path).stat().st_size < 4096 + 300
    found = find(tmp_path)
    assert found
    assert found.time_s == 199.0
    assert len([*read_all(str(tmp_path))]) > 10


class Writer(NamedTuple):
    """A process that writes, and says the number of each entry."""

    pid: int
    said: BinaryIO

    def end(self) -> int:
        """Wait for it; return its exit status, or the signal that has ended it, negative."""
        self.said.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def writers(folder: Path, count: int, each: int) -> list[Writer]:
    """Start processes that write, all at the same time."""
    ready, go = os.pipe()
    started = []
    for number in range(count):
        said, says = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(go)
            os.read(ready, 1)  # until nobody can write to it any more
            _exit_after(partial(_write, str(folder), str(number), each, says))
        os.close(says)
        started.append(Writer(pid, os.fdopen(said, "rb")))
    os.close(ready)
    os.close(go)
    return started


def _exit_after(work: Callable[[], None]) -> NoReturn:
    """Be a process that only does this."""
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def _write(folder: str, writer: str, count: int, says: int) -> None:
    for number in range(count):
        key = digest(writer, str(number))
        append(folder, [PROOF._replace(key=key, time_s=float(number), root_abs="/r" * 40)])
        os.write(says, b"%d\n" % number)


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("count", [40, 100])
def test_many_writers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("gitgates.store.files._APPEND_WAIT_S", 60.0)  # or some give up
    running = writers(tmp_path, count, 5)
    assert [one.said.read() for one in running] == [b"0\n1\n2\n3\n4\n"] * count
    assert {one.end() for one in running} == {0}
    keys = {digest(str(writer), str(number)) for writer in range(count) for number in range(5)}
    assert {proof.key for proof in read_all(str(tmp_path))} == keys
    assert len([*read_all(str(tmp_path))]) == 5 * count


@pytest.mark.slow
def test_killed_writers_leave_nothing_wrong(tmp_path: Path) -> None:
    counts = []
    for number, one in enumerate(writers(tmp_path, 4, 100_000)):
        last = [one.said.readline() for _ in range(20 * (number + 1))][-1]
        os.kill(one.pid, signal.SIGKILL)
        rest = one.said.read().split()
        assert one.end() == -signal.SIGKILL
        counts.append(int((rest or [last])[-1]))
    keys = {proof.key for proof in read_all(str(tmp_path))}
    for writer, count in enumerate(counts):
        written = {digest(str(writer), str(number)) for number in range(count + 2)}
        keys -= written
    assert not keys
    append(str(tmp_path), [PROOF])
    assert find(tmp_path) == PROOF


# Durations


def test_durations(tmp_path: Path) -> None:
    state = str(tmp_path)
    assert durations(state) == {}
    note_durations(state, {"lint": 2.0, "test": 30.0, "quick": 0.01})
    assert durations(state) == {"lint": 2.0, "test": 30.0}
    written = os.stat(f"{state}/proofs/durations").st_ino
    note_durations(state, {"lint": 2.05, "test": 33.0, "quick": 0.02})  # much the same
    assert os.stat(f"{state}/proofs/durations").st_ino == written
    note_durations(state, {"lint": 0.01})
    assert durations(state) == {"test": 30.0, "lint": 0.01}
    append(state, [PROOF])
    assert [*read_all(state)] == [PROOF]


def test_damaged_durations_are_unknown(tmp_path: Path) -> None:
    note_durations(str(tmp_path), {"lint": 2.0})
    path = tmp_path / "proofs/durations"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert durations(str(tmp_path)) == {}
        path.write_bytes(whole[:at])
        assert durations(str(tmp_path)) == {}
    note_durations(str(tmp_path), {"test": 3.5})
    assert durations(str(tmp_path)) == {"test": 3.5}


def test_durations_are_bounded_and_may_fail(tmp_path: Path) -> None:
    note_durations(str(tmp_path), {f"gate{number}": 1.0 for number in range(2000)})
    assert len(durations(str(tmp_path))) == 500
    assert durations(str(tmp_path))["gate1999"] == 1.0
    (tmp_path / "in").write_text("the way")
    note_durations(str(tmp_path / "in"), {"lint": 1.0})
    assert durations(str(tmp_path / "in")) == {}


# Writers that are killed wherever they are, and a full disk


_STEPS = ("open", "write", "pwrite", "ftruncate", "rename", "fchmod", "close", "makedirs")


def _write_killed_at(folder: str, steps: int, largest: int) -> None:
    """Write three proofs, as a process of its own that is killed before one of its steps."""
    vars(proofs)["_LARGEST"] = largest
    left = steps

    def killed_before(name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                if name in ("write", "pwrite"):  # the first half of it, as when a disk is slow
                    call(args[0], args[1][: len(args[1]) // 2], *args[2:])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    for name in _STEPS:
        setattr(os, name, killed_before(name))
    for number in range(3):
        key = digest("killed", str(number))
        append(folder, [PROOF._replace(key=key, time_s=1.0)])


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1 << 18, 600])
def test_a_writer_that_is_killed_at_each_of_its_steps(tmp_path: Path, largest: int) -> None:
    killed = {digest("killed", str(number)) for number in range(3)}
    for steps in range(200):
        folder = tmp_path / str(steps)
        for _time in range(3):  # so that the next one replaces the file, where it is small
            append(str(folder), [PROOF])
        pid = os.fork()
        if not pid:
            _exit_after(partial(_write_killed_at, str(folder), steps, largest))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for proof in read_all(str(folder)):
            assert proof == PROOF or proof.key in killed
        assert find(folder) == PROOF or (find(folder) is None and largest == 600)  # it is old
        after = PROOF._replace(key=digest("after"))  # whoever comes next is not in the way
        append(str(folder), [after])
        assert find(folder, after) == after
        if status == 0:
            break
        assert status == -signal.SIGKILL
    else:
        pytest.fail("it does not come to an end")
    assert steps > 8


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk))
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(("umount", str(disk)), check=True)


@pytest.mark.thorough
@pytest.mark.parametrize("largest", [1 << 20, 32 << 10])
def test_a_full_disk(full: Path, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "_LARGEST", largest)
    append(str(full), [PROOF])
    (full / "filler").write_bytes(b"x" * (230 << 10))
    written: set[str] = set()
    failed = 0
    for number in range(4000):
        proof = PROOF._replace(key=digest("full", str(number)), content=PROOF.content)
        try:
            append(str(full), [proof])
        except OSError:
            failed += 1
        else:
            written.add(proof.key)
        if failed > 20:
            break
    assert failed > 20
    every = {PROOF.key, *(digest("full", str(number)) for number in range(4000))}
    assert {proof.key for proof in read_all(str(full))} <= every
    (full / "filler").unlink()  # and as soon as there is room again:
    append(str(full), [PROOF._replace(hook="later")])
    found = find(full)
    assert found
    assert found.hook == "later"
