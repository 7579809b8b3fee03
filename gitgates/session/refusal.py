"""The last line of a hook that refuses: how to see more, and how to skip this once. Cold."""

from __future__ import annotations

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import BLOCK
from gitgates.hosts import is_called_by_agent
from gitgates.report.text import as_bytes, escaped_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.session.git_hooks import HookCall

# What `--no-verify` leaves a hook out of, by its subject.
_COMMANDS = {"staged": "git commit", "message": "git commit", "pushed": "git push"}


def next_steps(call: HookCall) -> bytes:
    """Return that line about a call that gates have refused; nothing if there is nothing to say.

    Of skipping, an agent is told nothing: that is for a person to decide.
    """
    decision, plan = call.decision, call.plan
    if not (decision and plan):
        return b""
    visits = decision.visits
    deciding = [v.result for v in visits if v.verdict >= BLOCK and v.result.status != "not-run"]
    is_saved = decision.run_abs and call.config.keep_runs
    parts = ["to see more: gitgates runs show latest"] if is_saved else []
    if any(result.status == "not-started" for result in deciding):
        parts.append("to see what gates lack: gitgates doctor")
    names = list(dict.fromkeys(result.gate for result in deciding))
    command = _COMMANDS.get(HOOK_POINTS[call.event.name].scope)
    if names and command and not is_called_by_agent(call.env):
        # A push may be refused by gates of a commit, which no variable skips.
        can_skip = plan.event.name == call.event.name and not any(
            step.gate.required or step.fault for step in plan.steps if step.gate.name in names
        )
        how = f"GITGATES_SKIP={','.join(names)} {command}" if can_skip else f"{command} --no-verify"
        parts.append(f"to skip this once: {how}")
    return as_bytes(f"gitgates: {escaped_line('; '.join(parts))}\n") if parts else b""
