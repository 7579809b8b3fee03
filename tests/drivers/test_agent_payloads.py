"""Whatever an agent's client sends, it is answered with what it takes, or with nothing.

Each recorded payload, and each that something is wrong with: fields that are missing or of another
type, an end in the middle, bytes that do not belong there.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from claude_support import NAMES, RECORDED, answer_of, damaged, placed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from payload_support import row_of

from gitgates.core.agent_types import Payload
from gitgates.core.types import BLOCK, STOP, WARN, Verdict
from gitgates.drivers.agent import respond
from gitgates.hosts.agent import BadPayload
from gitgates.hosts.agents.claude import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

EVENTS = HOST.PROTOCOL.events

# One of each event comes first.
_FIRST = {
    payload["hook_event_name"]: number for number, (_, payload) in reversed([*enumerate(RECORDED)])
}
NUMBERS = sorted(range(len(RECORDED)), key=lambda number: number not in _FIRST.values())
OF_EACH = pytest.mark.parametrize("number", NUMBERS, ids=[NAMES[number] for number in NUMBERS])

VERDICTS = ("CONTINUE", "BLOCK", "STOP")
WORD = '[hooks.{0}]\ngates = ["check"]\n'


@pytest.fixture
def repo(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Return a repository in which each event has a gate that fails, in a session at work."""
    gates_that(repo, "BLOCK")
    repo.write("a.txt", "bye\n")
    monkeypatch.chdir(repo.path)  # where a payload names no folder, it is our own
    return repo


def gates_that(repo: Repo, action: str) -> None:
    gate = f'[gates.check]\ncommand = "echo no; exit 1"\non_fail = "{action}"\n'
    hooks = "".join(WORD.format(event) for event in EVENTS)
    repo.config(f"breaker = {{ prompt = 1000000, session = 1000000 }}\n{gate}{hooks}")


def answer(raw: bytes, event: str) -> dict[str, Any]:
    """Answer a payload within this process; fail the test where we, or the client, stumble."""
    said: list[str] = []
    given = respond(raw, dict(os.environ), said.append)
    assert not [line for line in said if "internal error" in line]
    return answer_of(event, given)


def in_place(repo: Repo) -> list[dict[str, Any]]:
    return [placed(payload, repo.path) for _name, payload in RECORDED]


@pytest.mark.samples(1)
@pytest.mark.parametrize("action", VERDICTS)
def test_each_recorded_payload_is_answered(repo: Repo, action: str) -> None:
    gates_that(repo, action)
    said = {}
    for number, payload in enumerate(in_place(repo)):
        payload |= {"prompt_id": f"p{number}", "background_tasks": []}
        repo.write("a.txt", f"{number}\n")
        found = answer(json.dumps(payload).encode(), payload["hook_event_name"])
        said[payload["hook_event_name"]] = bool(found)
    silent = {event for event, is_said in said.items() if not is_said}
    assert silent == {"PermissionRequest"}


@pytest.mark.samples(len(_FIRST))
@OF_EACH
def test_a_field_is_missing_or_of_another_type(number: int, tmp_path: Path) -> None:
    """Every case is read and answered by the host."""
    for one in damaged(placed(RECORDED[number][1], tmp_path)):
        event = one.get("hook_event_name")
        payload = HOST.decode(json.dumps(one).encode(), {})
        _of_the_right_types(payload)
        for verdict in (WARN, BLOCK, STOP):
            given = HOST.encode(payload, Verdict(verdict, to_agent="a", to_person="p"))
            answer_of(event if isinstance(event, str) else "", given)


def _of_the_right_types(payload: Payload) -> None:
    usual = row_of(Payload())
    for field, value in row_of(payload).items():
        assert type(value) is type(usual[field]), field
    assert all(type(text) is str for text in (*payload.tool.paths, *payload.prompt.scheduled))


@pytest.mark.slow
@pytest.mark.samples(6)
@OF_EACH
def test_a_damaged_payload_goes_all_the_way(repo: Repo, number: int) -> None:
    """A few of the cases of each payload, and other ones of the next."""
    payload = in_place(repo)[number]
    answer_all(repo, payload, list(damaged(payload))[number % 48 :: 48])


@pytest.mark.thorough
@OF_EACH
def test_any_field_is_missing_or_of_another_type(repo: Repo, number: int) -> None:
    payload = in_place(repo)[number]
    answer_all(repo, payload, list(damaged(payload)))


def answer_all(repo: Repo, payload: dict[str, Any], several: list[dict[str, Any]]) -> None:
    answer(json.dumps(payload).encode(), payload["hook_event_name"])
    repo.write("a.txt", "changed\n")
    for count, one in enumerate(several):
        for name in ("prompt_id", "tool_use_id"):
            if one.get(name) == payload.get(name, ""):
                one[name] = f"own-{count}"  # or it would be the same event once more
        if one.get("session_id") == payload["session_id"]:
            one["session_id"] = f"s{count // 25}"  # each reads all that its session has seen
        event = one.get("hook_event_name")
        answer(json.dumps(one).encode(), event if isinstance(event, str) else "")


@pytest.mark.slow
@pytest.mark.samples(2)
@OF_EACH
def test_a_payload_ends_in_the_middle(repo: Repo, number: int) -> None:
    raw = json.dumps(in_place(repo)[number]).encode()
    for length in range(len(raw)):
        with pytest.raises(BadPayload):
            HOST.decode(raw[:length], {})
    assert answer(raw[: len(raw) // 2], "") == {}


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bytes_that_do_not_belong_there(repo: Repo, data: st.DataObject) -> None:
    payload = data.draw(st.sampled_from(in_place(repo)))
    raw = bytearray(json.dumps(payload, ensure_ascii=data.draw(st.booleans())).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        more = data.draw(st.binary(max_size=8) | st.sampled_from([b'"', b"\\u0000", b"{", b"\xff"]))
        raw[place : place + data.draw(st.sampled_from([0, len(more)]))] = more
    answer(bytes(raw), event_in(bytes(raw)))


def event_in(raw: bytes) -> str:
    """Return the event that a payload is of, as far as that can be told."""
    try:
        found = json.loads(raw.decode("utf-8", "replace"))
    except ValueError:
        return ""
    event = found.get("hook_event_name") if isinstance(found, dict) else None
    return event if isinstance(event, str) else ""


NO_PAYLOADS = (
    *(b"", b"\n", b"null", b"[]", b"7", b'"x"', b"{", b"\xff\xfe{}", b"NaN"),
    *(b"[" * 100_000, b"{}{}"),
)


@pytest.mark.usefixtures("repo")
def test_what_is_no_payload_is_passed_and_said() -> None:
    for raw in NO_PAYLOADS:
        said: list[str] = []
        assert respond(raw, dict(os.environ), said.append) == b""
        assert len(said) == 1
        assert said[0].startswith("the payload cannot be read: "), raw[:9]
