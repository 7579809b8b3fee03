"""A review that only the host's transcript tells of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitgates.policies import transcript
from gitgates.policies.transcript import find_review, may_have_acted
from gitgates.types import Review

REVIEW = Review()
SKILL = {"name": "Skill", "input": {"skill": "code-review"}}
WRITE = {"name": "Write", "input": {"file_path": "/a"}}


EARLY, NOW = "2026-01-01T10:00:00.000Z", "2026-01-01T12:00:00.000Z"
SINCE = 1767265200.0  # 11:00


def call(block: dict[str, Any], call_id: str = "t1", stamp: str = NOW) -> bytes:
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": call_id, **block}]
    record = {"type": "assistant", "message": {"content": content}, "timestamp": stamp}
    return json.dumps(record).encode()


def result(call_id: str = "t1", status: str = "completed", **fields: Any) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": call_id, **fields}]
    record = {"message": {"content": content}, "toolUseResult": {"status": status}}
    return json.dumps({"type": "user", "timestamp": NOW, **record}).encode()


def done(block: dict[str, Any]) -> tuple[bytes, bytes]:
    return call(block), result()


def found(tmp_path: Path, *lines: bytes) -> tuple[str, str] | None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return find_review(str(path), REVIEW, SINCE)


def test_a_skill_and_findings(tmp_path: Path) -> None:
    assert found(tmp_path, *done(SKILL)) == ("skill", "code-review")
    plugin = {"name": "Skill", "input": {"skill": "gitgates:review"}}
    assert found(tmp_path, *done(plugin)) == ("skill", "gitgates:review")
    old = {"name": "SlashCommand", "input": {"command": "/code-review"}}
    assert found(tmp_path, *done(old)) == ("skill", "code-review")
    assert found(tmp_path, *done({"name": "ReportFindings", "input": {}})) == ("findings", "")


def test_others_are_none(tmp_path: Path) -> None:
    assert found(tmp_path, *done({"name": "Skill", "input": {"skill": "format"}})) is None
    assert found(tmp_path, *done({"name": "Skill", "input": {}})) is None
    assert found(tmp_path, *done({"name": "Skill", "input": "code-review"})) is None
    assert found(tmp_path, *done({"name": "Bash", "input": {"command": "code-review"}})) is None
    mention = {"type": "text", "text": '{"type": "tool_use", "name": "Skill"} code-review'}
    line = json.dumps({"type": "assistant", "message": {"content": [mention]}}).encode()
    assert found(tmp_path, line) is None


def test_a_file_written_afterwards_takes_it_back(tmp_path: Path) -> None:
    assert found(tmp_path, *done(SKILL), call(WRITE)) is None
    assert found(tmp_path, call(WRITE), *done(SKILL)) == ("skill", "code-review")


def test_a_sub_agent_counts_when_it_has_reported(tmp_path: Path) -> None:
    start = call({"name": "Agent", "input": {"subagent_type": "x:code-reviewer"}})
    assert found(tmp_path, start) is None
    assert found(tmp_path, start, result(status="async_launched")) is None
    assert found(tmp_path, start, result(is_error=True)) is None
    assert found(tmp_path, start, result()) == ("agent", "x:code-reviewer")
    other = call({"name": "Task", "input": {"subagent_type": "writer"}})
    assert found(tmp_path, other, result()) is None


def test_bad_lines_are_skipped(tmp_path: Path) -> None:
    bad = [b"\0\xff\xfe", b'{"tool_use"', b'"tool_use"', b'["tool_use"]', b'{"tool_use": 1}']
    bad.append(b'{"type": "assistant", "message": {"content": [1, "tool_use"]}}')
    bad.append(b"[" * 100_000 + b'"tool_use"')
    assert found(tmp_path, *bad, *done(SKILL), *bad) == ("skill", "code-review")


def test_none_there(tmp_path: Path) -> None:
    assert find_review(str(tmp_path / "none"), REVIEW, SINCE) is None
    assert find_review("", REVIEW, SINCE) is None
    assert find_review(str(tmp_path), REVIEW, SINCE) is None


def test_a_call_counts_when_its_result_is_there_and_no_error(tmp_path: Path) -> None:
    assert found(tmp_path, call(SKILL)) is None
    assert found(tmp_path, call(SKILL), result(is_error=True)) is None


def test_what_is_older_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, call(SKILL, stamp=EARLY), result()) is None
    assert found(tmp_path, call(SKILL, stamp="when?"), result()) is None


def test_whether_the_agent_may_have_acted(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    assert may_have_acted(str(path))  # nobody knows
    path.write_bytes(call({"name": "Read", "input": {}}) + b"\n")
    assert not may_have_acted(str(path))
    path.write_bytes(call({"name": "Bash", "input": {}}) + b"\n")
    assert may_have_acted(str(path))


def test_what_another_conversation_did_is_none(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    lines = [json.dumps({**json.loads(line), "sessionId": "old"}) for line in done(SKILL)]
    path.write_text("\n".join(lines))
    assert find_review(str(path), REVIEW, SINCE, "new") is None
    assert find_review(str(path), REVIEW, SINCE, "old") == ("skill", "code-review")


def test_what_is_not_read_to_its_end_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"\n".join([*done(SKILL), call({"name": "Read", "input": {}})]))
    assert find_review(str(path), REVIEW, SINCE) == ("skill", "code-review")
    path.write_bytes(call({"name": "Read", "input": {}}))
    assert not may_have_acted(str(path))
    monkeypatch.setattr(transcript, "_LONGEST_S", -1.0)
    assert may_have_acted(str(path))
    path.write_bytes(b"\n".join(done(SKILL)))
    assert find_review(str(path), REVIEW, SINCE) is None


def test_what_is_longer_than_is_read_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "transcript.jsonl"
    lines = [*done(SKILL), call(WRITE)]
    path.write_bytes(b"\n".join(lines))
    monkeypatch.setattr(transcript, "read_tail", lambda *_: b"\n".join(lines[:2]))
    assert find_review(str(path), REVIEW, SINCE) is None
    monkeypatch.setattr(transcript, "read_tail", lambda *_: b"")
    assert may_have_acted(str(path))


def test_a_torn_call_may_have_been_anything(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(call({"name": "Bash", "input": {}})[:-5])
    assert may_have_acted(str(path))
