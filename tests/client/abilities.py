"""What our hooks can do in each agent, as tests with its real client see it.

Agent → ability → what is seen, and after a colon, why that is not more. The page on agents is made
from this table, and `test_hosts_real` holds each cell. `not possible`: nothing is seen of it.
"""

from __future__ import annotations

# As the page names them, in its order.
DENY = "refuse a tool"
FEED = "tell after an edit"
BLOCK = "block a stop"
RETRIES = "let go after the last retry"
REVIEW = "review reminder"
STRICT = "strict review"
SUBAGENT = "block a sub-agent's stop"
_MOST = {
    DENY: "denied, told",
    FEED: "told",
    BLOCK: "blocked, let go",
    RETRIES: "blocked, let go",
    REVIEW: "blocked, let go",
    STRICT: "blocked, let go",
    SUBAGENT: "blocked, let go",
}
_REMINDED = "reminded instead: a reviewer cannot be told from the agent that started it"
_ENDS = "not possible: `opencode run` ends with the agent's turn"
_LATE = "not possible: the agent may have the report before a hook is asked"
ABILITIES = {
    "codex": {**_MOST, STRICT: _REMINDED},
    "copilot": _MOST,
    "gemini": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not possible: hooks are not told which agent a call is from",
    },
    "qwen": {**_MOST, STRICT: _REMINDED},
    "droid": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not tested: sub-agents start for those who are logged in only",
    },
    "vibe": {
        **_MOST,
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Vibe has no event of its own for the end of a sub-agent",
    },
    "kimi": {
        **_MOST,
        FEED: "not possible: Kimi Code tells nobody what a hook says there",
        BLOCK: "blocked: Kimi Code does not ask again in the same turn",
        RETRIES: "not possible: Kimi Code asks once in a turn",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Kimi Code tells nobody what a hook says there",
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
        RETRIES: "not possible: `kilo run` is kept at work once",
        SUBAGENT: _LATE,
    },
    "hermes": {
        **_MOST,
        FEED: "not possible: Hermes tells nobody what a hook says there",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: Hermes has no event of its own for the end of a sub-agent",
    },
    "openhands": {
        **_MOST,
        FEED: "not possible: OpenHands tells nobody what a hook says there",
        STRICT: _REMINDED,
        SUBAGENT: "not possible: OpenHands runs no hooks of sub-agents",
    },
}
