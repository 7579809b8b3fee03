"""What each event of an agent can be answered with, and what becomes of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gitgates.core.agent_types import AgentFacts, Channels, Payload
from gitgates.core.lifecycle import AGENT_HOOKS
from gitgates.core.types import ALLOW, BLOCK, STOP, VERDICTS, WARN, Verdict
from gitgates.hosts.agents.claude import HOST
from gitgates.hosts.capabilities import express, reaches_agent, refuse_unasked

if TYPE_CHECKING:
    from gitgates.core.types import Level

EVENTS = HOST.PROTOCOL.events

ALL: tuple[Level, ...] = (ALLOW, WARN, BLOCK, STOP)
# event → what allow, warn, block and stop become, and which of these reach the agent itself
TABLE = {
    "SessionStart": ("allow warn warn warn", "allow warn"),
    "UserPromptSubmit": ("allow warn block stop", "allow warn"),
    "UserPromptExpansion": ("allow warn block stop", "allow warn"),
    "PreToolUse": ("allow warn block stop", "allow warn block"),
    "PostToolUse": ("allow warn block stop", "allow warn block"),
    "PostToolUseFailure": ("allow warn warn warn", "allow warn"),
    "PostToolBatch": ("allow warn block stop", "allow warn block"),
    "SubagentStart": ("allow warn warn warn", "allow warn"),
    "SubagentStop": ("allow warn block block", "block"),
    "TaskCompleted": ("allow warn block block", "block"),
    "TeammateIdle": ("allow warn block block", "block"),
    "Stop": ("allow warn block stop", "block"),
    "StopFailure": ("allow warn warn warn", ""),
    "PreCompact": ("allow warn block block", "block"),
    "PostCompact": ("allow warn warn warn", ""),
    "SessionEnd": ("allow warn warn warn", ""),
    "Nonsense": ("allow warn warn warn", ""),
}


def test_every_event_of_the_agent_is_known() -> None:
    assert {name: kind for name, (kind, _can) in EVENTS.items()} == {
        point.name: point.kind for point in AGENT_HOOKS
    }


def payload_of(event: str) -> Payload:
    kind, can = EVENTS.get(event, ("", Channels()))
    return Payload(event=event, kind=kind, can=can)


@pytest.mark.parametrize("event", TABLE)
def test_the_table(event: str) -> None:
    expressed, reaching = TABLE[event]
    payload = payload_of(event)
    assert " ".join(VERDICTS[express(payload, verdict)[0]] for verdict in ALL) == expressed
    assert " ".join(VERDICTS[v] for v in ALL if reaches_agent(payload.can, v)) == reaching


@pytest.mark.parametrize(
    ("event", "verdict", "why"),
    [
        ("Stop", STOP, ""),
        ("Stop", BLOCK, ""),
        ("SubagentStop", STOP, "SubagentStop cannot stop the agent"),
        ("SubagentStop", BLOCK, ""),
        ("SessionStart", STOP, "SessionStart cannot stop the agent"),
        ("SessionStart", BLOCK, "SessionStart cannot block"),
        ("PostToolUseFailure", BLOCK, "PostToolUseFailure cannot block"),
        ("SessionEnd", WARN, ""),
    ],
)
def test_why_it_is_another_verdict(event: str, verdict: Level, why: str) -> None:
    assert express(payload_of(event), verdict)[1] == why


@pytest.mark.parametrize(
    ("event", "attended", "why"),
    [
        ("PreToolUse", True, None),
        ("PreToolUse", False, "this session has no person to ask"),
        ("PostToolUse", True, "it cannot be asked"),
    ],
)
def test_a_question_that_nobody_can_answer_is_a_refusal(
    event: str, *, attended: bool, why: str | None
) -> None:
    payload = payload_of(event)._replace(agent=AgentFacts(attended=attended))
    question = Verdict(WARN, ask=True, to_agent="May it?")
    refused = Verdict(
        BLOCK, to_agent=f"May it?\n\nThis requires a person's permission, but {why}: it is refused."
    )
    assert refuse_unasked(payload, question) == (refused if why else question)
    assert refuse_unasked(payload, Verdict(WARN, to_agent="Mind it.")).level == WARN
    assert refuse_unasked(payload, question._replace(level=STOP)).level == STOP
