"""Which tools a session has used, where only the host's transcript tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitgates.core.agent_types import UNCHANGING
from gitgates.session import writers


def call(block: dict[str, Any]) -> bytes:
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t1", **block}]
    stamp = "2026-01-01T12:00:00.000Z"
    record = {"type": "assistant", "message": {"content": content}, "timestamp": stamp}
    return json.dumps(record).encode()


READ, BASH = call({"name": "Read", "input": {}}), call({"name": "Bash", "input": {}})


def acted(tmp_path: Path, *lines: bytes) -> bool:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    calls = writers.calls_since(str(path), 0)
    return calls is None or any(one.kind not in UNCHANGING for one in calls)


def test_whether_the_agent_may_have_acted(tmp_path: Path) -> None:
    assert not acted(tmp_path, READ)
    assert acted(tmp_path, READ, BASH)


def test_bad_lines_are_skipped(tmp_path: Path) -> None:
    bad = [b'["tool_use"]', b'{"tool_use": 1}']
    bad.append(b'{"type": "assistant", "message": {"content": [1, "tool_use"]}}')
    assert not acted(tmp_path, *bad, READ, *bad)


def test_a_torn_call_may_have_been_anything(tmp_path: Path) -> None:
    assert acted(tmp_path, READ, BASH[:-5])
    assert acted(tmp_path, b'\xff"tool_use"', READ)
    assert acted(tmp_path, b"[" * 100_000 + b'"tool_use"')


def test_what_is_not_read_to_its_end_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not acted(tmp_path, READ)
    monkeypatch.setattr(writers, "_LONGEST_S", -1.0)
    assert acted(tmp_path, READ)


def test_what_is_longer_than_is_read_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "read_tail", lambda *_: b"")
    assert acted(tmp_path, READ)
