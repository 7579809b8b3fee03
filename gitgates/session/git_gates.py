"""The policy that runs the gates of a hook of git, of the pre-commit framework, or by hand."""

from __future__ import annotations

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import is_lent
from gitgates.core.types import BLOCK, CHECKED_OUT, HIDDEN, Config, Decision, Event, Plan, Verdict
from gitgates.engine.plan import (
    describe_refs,
    has_types,
    join_decisions,
    make_plan,
    matches_deleted,
    record_skips,
    wants_paths,
    without_content,
)
from gitgates.engine.run import run_plan
from gitgates.git.index import named_index
from gitgates.session.git_hooks import SIGNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.policy import Need
    from gitgates.core.types import Place
    from gitgates.session.git_hooks import HookCall, JudgedContent


def needs(_config: Config) -> tuple[Need, ...]:
    """Return nothing: the policy is passive."""
    return ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Run the gates of the hook on each content that is judged."""
    if not call.hook.gates or call.is_dry:
        return so_far
    decisions: list[Decision] = []
    for content in call.contents[:1] if call.is_once else call.contents:
        decisions.append(_run(call, content))
        is_passed = decisions[-1].verdict < BLOCK
        if is_passed and content.commit and is_lent(call.config, SIGNED):
            from gitgates.session.push_record import record_push  # only where proofs are signed

            record_push(call, content, decisions[-1])
        if not is_passed and call.hook.strategy == "sequence":
            break
    call.decision = join_decisions(tuple(decisions))
    return so_far.joined(Verdict(call.decision.verdict))


def _run(call: HookCall, content: JudgedContent) -> Decision:
    if content.place != CHECKED_OUT:
        return _run_here(call, content.event, content.place)
    refs = describe_refs(content.event)
    what = f"is pushed to {refs}" if content.commit else "is being committed"
    if content.commit or content.why:
        why = f": {content.why}" if content.why else ""
        call.say(f"checking what {what} in a private checkout{why}")
    decision = run_in_checkout(call, content.event, content.commit)
    if decision.verdict >= BLOCK:
        from gitgates.worktree.missing import setup_hints  # nothing is missing in most

        for hint in setup_hints(call.repo, call.config, content.event.name):
            call.say(hint)
    return decision


def _plan(call: HookCall, event: Event, place: Place) -> Plan:
    call.plan = plan_event(call, event, place)
    record_skips(call.plan, call.repo, call.skips)
    return call.plan


def _run_here(call: HookCall, event: Event, place: Place) -> Decision:
    """Check the working tree."""

    def plan_again() -> Plan:
        call.plan = plan_event(call, event, place)
        return call.plan

    options = call.options._replace(place=place, plan_again=plan_again)
    plan = _plan(call, event, place)
    if event.name == "pre-push" and event.host == "git" and not event.refs:
        plan = call.plan = without_content(plan)
    return run_plan(plan, call.config, call.repo, call.listener, options=options)


def run_in_checkout(call: HookCall, event: Event, tip: str = "") -> Decision:
    """Check a commit, or without one the index being committed, in a private checkout."""
    # Cold: only where the working tree is not what is to be checked.
    from gitgates.worktree.checkouts import check_out, check_out_index
    from gitgates.worktree.setup import worktree_settings

    repo, settings = call.repo, worktree_settings(call.config)
    plan = _plan(call, event, CHECKED_OUT)
    checked_out = (
        check_out(repo, tip, settings, call.say)
        if tip
        else check_out_index(repo, named_index(repo)[0], settings, call.say)
    )
    with checked_out as checkout:
        for note in checkout.notes:
            call.say(note)
        if has_types(plan):  # those of the files there
            files_abs = checkout.repo.root_abs
            plan = call.plan = plan_event(call, event._replace(files_abs=files_abs), CHECKED_OUT)
        options = call.options._replace(checkout=checkout.repo, place=CHECKED_OUT)
        return run_plan(plan, call.config, repo, call.listener, options=options)


def plan_event(call: HookCall, event: Event, place: Place) -> Plan:
    """Return the plan of an event; git is asked for paths if a gate needs them."""
    config, hook, repo = call.config, call.hook, call.repo
    is_named = HOOK_POINTS[event.name].scope in ("staged", "pushed")
    # Where unstaged work is hidden, git is asked for the staged paths as well.
    is_needed = wants_paths(config, hook) or (is_named and place != HIDDEN)
    if event.paths is None and is_needed:
        from gitgates.git.paths import with_paths  # only where a gate is about paths

        event = with_paths(event, repo)
    plan = make_plan(config, hook, event, call.skips)
    is_framework = event.host == "pre-commit" and is_named
    if is_framework and any(step.skip and matches_deleted(step.gate) for step in plan.steps):
        # The framework does not name deleted files; git is asked only where that may matter.
        from gitgates.git.paths import with_paths

        deleted = with_paths(event, repo).deleted
        plan = make_plan(config, hook, event._replace(deleted=deleted), call.skips)
    return plan
