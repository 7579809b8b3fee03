"""The trace ledger: many writers, killed ones, tampering, pruning."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import SRC
from hypothesis import given
from hypothesis import strategies as st
from together import run_together

from gitgates.features.trace import ledger
from gitgates.features.trace.ledger import prune, verify
from gitgates.store.log import append_lines


def write(common: Path, session: str = "s1", agent: str = "", **fields: Any) -> dict[str, Any]:
    file = {"path": "a.py", "operation": "edit", "blocks": [{"old": [1, 1], "new": [3, 2]}]}
    known = {"session": session, "agent": agent, "intent": "INT-001", "tool": "Edit", "commit": ""}
    return ledger.append(str(common), {**known, "files": [file], **fields})


def problems(common: Path) -> list[str]:
    return list(verify(str(common)).problems)


def file_of(common: Path) -> Path:
    return Path(ledger.ledger_abs(str(common)))


def test_records_are_one_chain(tmp_path: Path) -> None:
    one, other, two = write(tmp_path), write(tmp_path, agent="a1"), write(tmp_path)
    assert [(r["n"], r["prev"]) for r in (one, other, two)] == [
        (1, ""),
        (2, one["sha256"]),
        (3, other["sha256"]),
    ]
    assert [*ledger.records(str(tmp_path))] == [one, other, two]
    assert verify(str(tmp_path)) == (3, (), ())


def test_a_record_can_be_checked_without_us(tmp_path: Path) -> None:
    sealed = write(tmp_path)["sha256"]
    program = r"""sed 's/, "sha256": "[0-9a-f]*"}$/}/' ledger.jsonl | tr -d '\n' | sha256sum"""
    done = subprocess.check_output(["sh", "-c", program], cwd=file_of(tmp_path).parent)
    assert done.decode().split()[0] == sealed


def test_it_is_readable_to_its_owner_alone(tmp_path: Path) -> None:
    write(tmp_path)
    folder = file_of(tmp_path).parent
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())}
    assert set(modes.values()) == {"0o700", "0o600"}
    assert modes["trace"] == "0o700"


def test_an_empty_ledger_verifies(tmp_path: Path) -> None:
    assert verify(str(tmp_path)) == (0, (), ())
    assert ledger.recent(str(tmp_path), {"intent": "INT-001"}, 5) == []


def test_recent_lines_of_an_intent(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, intent=f"INT-00{number % 2}", agent="a" * number)
    file = {"path": "new.py", "was": "old.py", "operation": "rename", "blocks": []}
    last = write(tmp_path, intent="INT-000", files=[file], more=7)
    time = last["time"][:19]
    assert ledger.recent(str(tmp_path), {"intent": "INT-000"}, 1) == [
        f"{time}Z s1 Edit: rename new.py from old.py and 7 more"
    ]
    found = ledger.recent(str(tmp_path), {"intent": "INT-000"}, 9)
    assert [line[20:] for line in found] == [
        " s1 Edit: rename new.py from old.py and 7 more",
        " s1/aa Edit: edit a.py 3-4",
        " s1 Edit: edit a.py 3-4",
    ]
    assert ledger.recent(str(tmp_path), {"intent": "INT-000"}, 0) == []


@pytest.mark.thorough
@pytest.mark.slow
def test_fifty_writers_at_once(tmp_path: Path) -> None:
    body = f"""
    import sys
    sys.path[:0] = [{str(SRC / "tests")!r}, {str(SRC / "tests/features/trace")!r}]
    from gitgates.features.trace import ledger
    for _ in range(3):
        names = ("agent", "intent", "tool", "commit")
        fields = {{"session": "s" + str(int(by) % 25), "files": [], **dict.fromkeys(names, "")}}
        ledger.append(".", fields)
    """
    run_together(50, body, tmp_path)
    assert verify(str(tmp_path)) == (150, (), ())
    counts = [one["n"] for one in [*ledger.records(str(tmp_path))]]
    assert counts == [*range(1, 151)]


@pytest.mark.slow
def test_writers_that_are_killed_leave_a_ledger_that_verifies(tmp_path: Path) -> None:
    program = (
        "from gitgates.features.trace import ledger\n"
        "print('up', flush=True)\n"
        "names = ('agent', 'intent', 'tool', 'commit')\n"
        "fields = {'session': 's', 'files': [], **dict.fromkeys(names, '')}\n"
        "while True: ledger.append('.', fields)\n"
    )
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SRC)},
            stdout=subprocess.PIPE,
        )
        assert child.stdout
        child.stdout.readline()
        before = len([*ledger.records(str(tmp_path))])
        while len([*ledger.records(str(tmp_path))]) < before + 3:
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        write(tmp_path, "s")
    assert problems(tmp_path) == []


def test_a_writer_that_was_killed_before_its_head_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_die(*args: Any) -> None:
        append_lines(*args)
        raise KeyboardInterrupt

    for number in (1, 3):
        with monkeypatch.context() as patched:
            patched.setattr(ledger, "append_lines", append_and_die)
            with pytest.raises(KeyboardInterrupt):
                write(tmp_path)
        assert verify(str(tmp_path)) == (number, (), ())
        assert write(tmp_path)["n"] == number + 1
        assert verify(str(tmp_path)) == (number + 1, (), ())
    assert problems(tmp_path) == []


def test_a_head_that_is_damaged_or_gone_is_said(tmp_path: Path) -> None:
    write(tmp_path)
    head = file_of(tmp_path).parent / "head"
    missing = ["the head is missing or damaged: truncation cannot be ruled out"]
    head.write_bytes(b"")  # as after a loss of power
    assert problems(tmp_path) == missing
    assert write(tmp_path)["n"] == 2
    assert problems(tmp_path) == []
    head.unlink()
    assert problems(tmp_path) == missing


def test_an_end_that_was_cut_off(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path)
    first, _second = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    file_of(tmp_path).write_bytes(first)
    assert problems(tmp_path)
    last = write(tmp_path)["id"]
    assert problems(tmp_path) == [f"line 2 ({last}): record 3 does not follow 1"]


def test_a_torn_line_is_noted(tmp_path: Path) -> None:
    write(tmp_path)
    whole = file_of(tmp_path).read_bytes()
    line = whole.rstrip().replace(b'"n": 1', b'"n": 2')
    for length in (10, len(line) - 80, len(line) - 60, len(line) - 1):
        file_of(tmp_path).write_bytes(whole + line[:length])
        assert verify(str(tmp_path)) == (1, (), ("line 2 is torn",))
    write(tmp_path)
    assert verify(str(tmp_path)) == (2, (), ("line 2 is torn",))


@given(data=st.data())
def test_any_byte_that_is_changed_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    for number in range(4):
        write(folder, "s" * (1 + number % 2))
    if (keep := data.draw(st.integers(0, 4))) < 4:
        prune(str(folder), "Ann", keep=keep)
    raw = bytearray(file_of(folder).read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    file_of(folder).write_bytes(raw)
    assert problems(folder), f"byte {at}"


def test_what_is_changed_is_named(tmp_path: Path) -> None:
    ids = [write(tmp_path)["id"] for _ in range(3)]
    whole = file_of(tmp_path).read_bytes()
    lines = whole.splitlines(keepends=True)
    file_of(tmp_path).write_bytes(whole.replace(b'"Edit"', b'"Read"', 1))
    damaged = "line 1 is damaged: it does not match its own hash"
    follows = "does not follow 0"
    assert problems(tmp_path) == [damaged, f"line 2 ({ids[1]}): record 2 {follows}"]
    file_of(tmp_path).write_bytes(lines[0] + lines[2])
    assert problems(tmp_path) == [f"line 2 ({ids[2]}): record 3 does not follow 1"]
    file_of(tmp_path).write_bytes(lines[0] + lines[1])
    gone = (
        "record 3 is missing, and possibly others: the end was truncated. The last one present is"
    )
    assert problems(tmp_path) == [f"{gone} 2"]
    file_of(tmp_path).unlink()
    assert problems(tmp_path) == [f"{gone} 0"]


def test_a_record_with_a_hash_of_its_own_does_not_fit_into_the_chain(tmp_path: Path) -> None:
    first, second = write(tmp_path), write(tmp_path)
    lines = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    fields = {name: value for name, value in first.items() if name != "sha256"}
    forged = ledger.sealed({**fields, "intent": "INT-666"})
    file_of(tmp_path).write_bytes(forged + lines[1])
    assert problems(tmp_path) == [f"line 2 ({second['id']}): record 2 does not follow 1"]


def test_what_is_pruned_leaves_an_anchor(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path, "s1" if number % 2 else "s2")
    write(tmp_path, "s3")
    assert prune(str(tmp_path), "Ann", keep=3) == 4
    found = verify(str(tmp_path))
    assert (found.records, found.problems) == (3, ())
    assert [note[20:] for note in found.notes] == [": Ann removed 4 records"]
    assert write(tmp_path)["n"] == 8
    assert prune(str(tmp_path), "Bob", keep=1) == 3
    assert [note[20:] for note in verify(str(tmp_path)).notes] == [": Bob removed 7 records"]
    assert write(tmp_path)["n"] == 9
    assert problems(tmp_path) == []
    assert prune(str(tmp_path), "Bob", before="9") == 2
    assert verify(str(tmp_path)).records == 0
    assert write(tmp_path)["n"] == 10
    assert problems(tmp_path) == []


def test_an_anchor_is_the_first_line(tmp_path: Path) -> None:
    for _ in range(4):
        write(tmp_path)
    first, *_ = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    prune(str(tmp_path), "Ann", keep=3)
    anchor, *rest = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    for lines in ([anchor, anchor, *rest], [first, anchor, *rest]):
        file_of(tmp_path).write_bytes(b"".join(lines))
        assert problems(tmp_path) == ["line 2: a prune record may only be in the first line"]


@pytest.mark.parametrize(
    ("field", "value"), [("n", "2"), ("session", 5), ("agent", None), ("files", {}), ("v", 3)]
)
def test_a_record_that_is_none_of_ours(tmp_path: Path, field: str, value: object) -> None:
    record = write(tmp_path)
    del record["sha256"]
    with file_of(tmp_path).open("ab") as file:
        file.write(ledger.sealed({**record, field: value}))
    assert problems(tmp_path) == ["line 2 is damaged: it is not a record known to this version"]
    assert write(tmp_path)["n"] == 2


def test_a_ledger_that_does_not_verify_is_not_pruned(tmp_path: Path) -> None:
    for _ in range(3):
        write(tmp_path)
    file = file_of(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"Edit"', b'"Read"', 1))
    before = file.read_bytes()
    with pytest.raises(ValueError, match="line 1 is damaged"):
        prune(str(tmp_path), "Ann", keep=1)
    assert file.read_bytes() == before
