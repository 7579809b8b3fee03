"""What our hooks can do in each agent, as tests with its real client see it.

Agent → ability → what is seen. The page on agents is made from this table, and `test_hosts_real`
holds each row. `not possible` means that the client does nothing of it; `not tested` that its
client does not do so here.
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
_ALL_BUT_SUBAGENTS = {
    DENY: "denied, told",
    FEED: "told",
    BLOCK: "blocked, let go",
    RETRIES: "blocked, let go",
    REVIEW: "blocked, let go",
}
_SUBAGENTS = {STRICT: "blocked, let go", SUBAGENT: "blocked, let go"}
_ALL = {**_ALL_BUT_SUBAGENTS, **_SUBAGENTS}
_GEMINI = "not possible: it does not tell hooks which agent a call is from"
_QWEN = "not possible: no hook can change a command, so that none is known to be the reviewer's"
_DROID = "not tested: it starts sub-agents for those who are logged in only"
ABILITIES = {
    "codex": _ALL,
    "copilot": _ALL,
    "gemini": {**_ALL_BUT_SUBAGENTS, STRICT: _GEMINI, SUBAGENT: _GEMINI},
    "qwen": {**_ALL, STRICT: _QWEN},
    "droid": {**_ALL_BUT_SUBAGENTS, STRICT: _DROID, SUBAGENT: _DROID},
}
