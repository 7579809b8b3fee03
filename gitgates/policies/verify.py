"""Refuse pushes with commits that went round their gates; run what is missing before."""

from __future__ import annotations

from gitgates.policy import Need
from gitgates.types import BLOCK, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.git_hooks import HookCall
    from gitgates.types import Config


def needs(config: Config) -> tuple[Need, ...]:
    """Return the pushes, where they are to be verified."""
    return (Need(kind="before-push"),) if config.verifies else ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Verify the commits that are pushed; end at the first that does not pass."""
    if so_far.level >= BLOCK:
        return so_far
    # Cold: whoever asks what this policy needs loads none of it.
    from gitgates.policies.verification import pushed, run_missing, verify

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
    return so_far
