"""MCP tools: select an intent, and request a wider scope."""

from __future__ import annotations

from gitgates.verbs.tool import caller_option, run_verb


async def select_active_intent(intent_id: str, caller: str = "") -> str:
    """Select the intent that you work on. Returns its scope, constraints, acceptance criteria."""
    return await run_verb("intent", "select", *caller_option(caller), "--", intent_id)


async def scope_expansion_request(
    intent_id: str, pattern: str, reason: str, caller: str = ""
) -> str:
    """Ask the person to extend the scope of an intent: a pattern such as src/api/**, and why."""
    words = ("intent", "scope-expansion-request", *caller_option(caller), f"--reason={reason}")
    return await run_verb(*words, "--", intent_id, pattern)


TOOLS = (select_active_intent, scope_expansion_request)
