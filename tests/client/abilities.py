"""What our hooks can do in each agent, as tests with its real client show.

Agent → ability → the result, and after a colon, why it is not more. The page about agents is
generated from this table, and `test_hosts_real` tests each cell. `not possible`: it has no effect.
"""

from __future__ import annotations

# The columns of the page, in order.
DENY = "refuse a tool"
FEED = "feedback after an edit"
BLOCK = "block a stop"
RETRIES = "allow a stop after the last retry"
REVIEW = "review reminder"
STRICT = "strict review"
SUBAGENT = "block a sub-agent's stop"
_MOST = {
    DENY: "denied, agent told",
    FEED: "agent told",
    BLOCK: "blocked, then allowed",
    RETRIES: "blocked, then allowed",
    REVIEW: "blocked, then allowed",
    STRICT: "blocked, then allowed",
    SUBAGENT: "blocked, then allowed",
}
_REMINDED = "reminder instead: a reviewer cannot be distinguished from the agent that started it"
_ENDS = "not possible: `opencode run` ends with the agent's turn"
_LATE = "not possible: the agent may get the report before the hook runs"
ABILITIES = {
    "codex": {**_MOST, STRICT: _REMINDED},
    "copilot": _MOST,
    "gemini": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not possible: hooks do not get the agent of a call",
    },
    "qwen": {**_MOST, STRICT: _REMINDED},
    "droid": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not tested: sub-agents require a login",
    },
    "vibe": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Vibe has no separate event for the end of a sub-agent",
    },
    "kimi": {
        **_MOST,
        FEED: "not possible: Kimi Code ignores the output of a hook there",
        BLOCK: "blocked: Kimi Code fires the event only once per turn",
        RETRIES: "not possible: Kimi Code fires the event only once per turn",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Kimi Code ignores the output of a hook there",
    },
    "opencode": {
        **_MOST,
        BLOCK: _ENDS,
        RETRIES: _ENDS,
        REVIEW: _ENDS,
        STRICT: _ENDS,
        SUBAGENT: _LATE,
    },
    "kilo": {
        **_MOST,
        RETRIES: "not possible: `kilo run` can be blocked only once",
        SUBAGENT: _LATE,
    },
    "hermes": {
        **_MOST,
        FEED: "not possible: Hermes ignores the output of a hook there",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Hermes has no separate event for the end of a sub-agent",
    },
    "openhands": {
        **_MOST,
        FEED: "not possible: OpenHands ignores the output of a hook there",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: OpenHands runs no hooks for sub-agents",
    },
}
