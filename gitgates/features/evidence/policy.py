"""Refuse pushes with commits that bypassed their gates; run missing gates first."""

from __future__ import annotations

from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, Verdict
from gitgates.engine.plan.walk import unchecked_gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.drivers.git import HookCall


def needs(config: Config) -> tuple[Need, ...]:
    """Return pushes, if they must be verified."""
    return (Need(kind="before-push"),) if config.verifies else ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Verify the pushed commits; stop at the first that does not pass."""
    if so_far.level >= BLOCK:
        return so_far
    # Cold: `needs` uses none of these.
    from gitgates.features.evidence.verification import run_missing, verify
    from gitgates.git.paths import pushed
    from gitgates.worktree.setup import setup_hints

    event, repo = call.event, call.repo
    revisions = pushed(event.refs, event.argv[0] if event.argv else "", repo.git)
    for verified in verify(repo, revisions, call.say) if revisions else ():
        if verified.problem:
            return so_far.joined(Verdict(BLOCK, to_person=f"{verified.title}: {verified.problem}"))
        if not verified.missing():
            continue
        for reason in verified.refused:
            call.say(f"{verified.title}: not believed: {reason}")
        rerun = run_missing(verified, repo, call.listener)
        if rerun.decision and rerun.decision.verdict >= BLOCK:
            call.plan, call.config, call.decision = rerun.plan, rerun.config, rerun.decision
            for hint in setup_hints(repo, rerun.config, event.name):
                call.say(hint)
            return so_far.joined(Verdict(BLOCK, to_person=f"{verified.title}: not pushed"))
        if rerun.decision and (idle := unchecked_gates(rerun.decision)):
            text = f"{verified.title}: not pushed: nothing was checked by `{'`, `'.join(idle)}`"
            return so_far.joined(Verdict(BLOCK, to_person=text))
    return so_far
