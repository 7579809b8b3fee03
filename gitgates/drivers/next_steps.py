"""What to do after gates have refused something: how to see more, how to skip this."""

from __future__ import annotations

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import BLOCK
from gitgates.engine.plan.plan import is_gate
from gitgates.hosts import is_called_by_agent
from gitgates.report.text import as_bytes, escaped_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.git import HookCall

_COMMANDS = {"staged": "git commit", "message": "git commit", "pushed": "git push"}


def next_steps(call: HookCall) -> bytes:
    """Return the last line about a call that gates have refused: how to see more, how to skip this.

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
    scope = HOOK_POINTS[call.event.name].scope if call.event.host == "git" else ""
    command = _COMMANDS.get(scope)
    if names and command and not is_called_by_agent(call.env):
        # A push may be refused by gates of a commit, which no variable skips.
        can_skip = plan.event.name == call.event.name and not any(
            step.gate.actions.required or step.fault
            for step in plan.steps
            if step.gate.name in names
        )
        before = [name.strip() for name in call.env.get("GITGATES_SKIP", "").split(",")]
        # With a colon, it is a feature's own, which only that knows.
        existing = [name for name in before if ":" in name or is_gate(name, call.config)]
        names = [*dict.fromkeys([*existing, *names])]  # all that it takes, not in turns
        how = f"GITGATES_SKIP={','.join(names)} {command}" if can_skip else f"{command} --no-verify"
        parts.append(f"to skip this once: {how}")
    return as_bytes(f"gitgates: {escaped_line('; '.join(parts))}\n") if parts else b""
