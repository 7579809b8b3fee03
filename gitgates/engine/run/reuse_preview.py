"""What would be reused: for `gitgates explain`, and compared for `--audit-reuse`. Cold."""

from __future__ import annotations

from gitgates.core.clean import counted
from gitgates.core.types import BLOCK, Config, Decision, Plan
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import OFF, REUSE, is_reusable
from gitgates.engine.plan.walk import describe
from gitgates.engine.reuse.signed_keys import commands_for
from gitgates.engine.run.admission import reuse_of
from gitgates.git.repo import Repo

_NEVER = "never, because of `pass_hook_input`, `metrics` or `git_env`"


def preview_reuse(plan: Plan, config: Config, repo: Repo) -> dict[str, str]:
    """Return gate → what is reused, or why nothing is; without gates that reuse no passes.

    Nothing is run.
    """
    steps = [step for step in plan.steps if step.gate.reuse.mode and not (step.skip or step.fault)]
    if repo.env.get(REUSE) == OFF:
        return {step.gate.name: f"never, because of {REUSE}=0" for step in steps}
    commands_of = commands_for(plan, repo)
    reuse = reuse_of(plan, config, repo, None, say=Listener().message)
    texts = {}
    for step in steps:
        text = reuse.preview(step, commands_of)
        texts[step.gate.name] = text if is_reusable(step.gate) else _NEVER
    return texts


def audited(decision: Decision) -> Decision:
    """Return the decision of an audit: it blocks if a gate did not pass again, or changed files."""
    compared = [visit.result for visit in decision.visits if visit.result.origin.reused]
    different = [result for result in compared if result.status != "passed" or result.changed_paths]
    notes = [
        f"gate `{result.gate}` {describe(result)}; its pass would have been reused "
        f"({result.origin.reused})"
        for result in different
    ]
    if not compared:
        notes = ["nothing was compared: no pass would have been reused"]
    elif not different:
        text = f"{counted(len(compared), 'gate')} would have been reused, and passed again"
        notes = [f"no difference: {text}"]
    decision = decision._replace(notes=(*decision.notes, *notes))
    if not different or decision.verdict >= BLOCK:
        return decision
    gates = ", ".join(f"`{result.gate}`" for result in different)
    return decision._replace(verdict=BLOCK, reason=f"wrong passes would have been reused: {gates}")
