"""Refuse pushes with commits that bypassed their gates; run what is missing before."""

from __future__ import annotations

from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, Verdict
from gitgates.engine.nothing_checked import unchecked_gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.session.git_hooks import HookCall


def needs(config: Config) -> tuple[Need, ...]:
    """Return the pushes, where they are to be verified."""
    return (Need(kind="before-push"),) if config.verifies else ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Verify the commits that are pushed; end at the first that does not pass."""
    if so_far.level >= BLOCK:
        return so_far
    # Cold: whoever asks what this policy needs loads none of it.
    from gitgates.features.evidence.verification import pushed, run_missing, verify

    event, repo = call.event, call.repo
    revisions = pushed(event.refs, event.argv[0] if event.argv else "", repo.git)
    for found in verify(repo, revisions, call.say) if revisions else ():
        if found.problem:
            return so_far.joined(Verdict(BLOCK, to_person=f"{found.title}: {found.problem}"))
        if not found.missing():
            continue
        ran = run_missing(found, repo, call.listener)
        if ran.decision and ran.decision.verdict >= BLOCK:
            call.plan, call.config, call.decision = ran.plan, ran.config, ran.decision
            return so_far.joined(Verdict(BLOCK, to_person=f"{found.title}: not pushed"))
        if ran.decision and (idle := unchecked_gates(ran.decision)):
            text = f"{found.title}: not pushed: nothing was checked by `{'`, `'.join(idle)}`"
            return so_far.joined(Verdict(BLOCK, to_person=text))
    return so_far
