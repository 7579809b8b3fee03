"""Files of earlier versions go into the log of proofs, once and whole."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from gitgates.store import former_files
from gitgates.store.proofs import of_content, read_all

TREE, BASE = "a" * 40, "b" * 40
EVIDENCE = f"1\t1700000000\t{TREE}\t{BASE}\tpre-commit\tx\tpassed:lint,unmatched:a b\n"
NUMBERS = (
    f'{{"v":1,"time":"2024-01-02T03:04:05Z","gate":"test","metrics":{{"n":80.5}},"commit":"{BASE}",'
    f'"tree":"{TREE}","hook":"Stop","run":"r"}}\n'
)


def test_both_are_read_and_emptied(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text(EVIDENCE)
    (tmp_path / "metrics.jsonl").write_text(NUMBERS)
    lint, other, test = of_content(str(tmp_path), TREE)
    assert (lint.gate, lint.status, lint.base, lint.config) == ("lint", "passed", BASE, "x")
    assert (other.gate, other.status, other.time_s) == ("a b", "unmatched", 1_700_000_000.0)
    assert (test.gate, test.numbers, test.base) == ("test", {"n": 80.5}, BASE)
    assert (test.time_s, test.config) == (1_704_164_645.0, "")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["proofs"]
    assert [path.stat().st_size for path in tmp_path.iterdir() if path.is_file()] == [0, 0]
    assert len([*read_all(str(tmp_path))]) == 3


def test_damage_is_left_out(tmp_path: Path) -> None:
    bad = ["", "\t" * 6, "2" + EVIDENCE[1:], EVIDENCE.replace(TREE, "HEAD^{tree}"), "1\tx"]
    (tmp_path / "evidence").write_text("\n".join(bad) + "\n" + EVIDENCE)
    wrong = [NUMBERS.replace(*pair) for pair in (("80.5", "1e20"), ("2024", "x"), ('"n"', "n"))]
    (tmp_path / "metrics.jsonl").write_text("".join(wrong) + "[]\n" + NUMBERS + NUMBERS[:50])
    assert [proof.gate for proof in read_all(str(tmp_path))] == ["lint", "a b", "test"]


def test_what_an_earlier_version_writes_now_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former_files, "_LOCK_WAIT_S", 0.0)
    path = tmp_path / "evidence"
    path.write_text(EVIDENCE)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [*read_all(str(tmp_path))] == []
        file.write(EVIDENCE.replace("lint", "late"))
    assert [proof.gate for proof in read_all(str(tmp_path))] == ["lint", "a b", "late", "a b"]
    assert path.read_text() == ""


def test_what_an_earlier_version_appends_to_the_file_it_has_opened_is_not_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(NUMBERS)
    with path.open("a") as file:
        assert len([*read_all(str(tmp_path))]) == 1
        file.write(NUMBERS.replace("test", "late"))
    assert [proof.gate for proof in read_all(str(tmp_path))] == ["test", "late"]


def test_where_the_log_cannot_be_written_they_stay(tmp_path: Path) -> None:
    (tmp_path / "proofs").write_text("in the way")
    (tmp_path / "evidence").write_text(EVIDENCE)
    assert [*read_all(str(tmp_path))] == []
    assert (tmp_path / "evidence").read_text() == EVIDENCE
