"""MCP tools: the state of the review, and a reviewer's decision."""

from __future__ import annotations

from gitgates.verbs.tool import caller_option, run_verb


async def review_status(caller: str = "") -> str:
    """Show what has changed in this session, and whether it was reviewed."""
    return await run_verb("review", "status", *caller_option(caller))


async def post_review(
    decision: str,
    summary: str,
    *,
    token: str = "",
    message_to_agent: str = "",
    caller: str = "",
) -> str:
    """Post your decision on the change, COMPLETE or ISSUES, as its reviewer, with your token."""
    options = (f"--decision={decision}", f"--summary={summary}", f"--token={token}")
    return await run_verb(
        "review", "done", *caller_option(caller), *options, f"--message-to-agent={message_to_agent}"
    )


TOOLS = (review_status, post_review)
