"""The policy that runs the gates of a hook of git, of the pre-commit framework, or by hand."""

from __future__ import annotations

from gitgates.config.load import load
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import is_lent
from gitgates.core.types import BLOCK, Config, Decision, Event, Plan, Verdict
from gitgates.engine.plan import (
    choose_view,
    describe_refs,
    has_types,
    join_decisions,
    make_plan,
    matches_deleted,
    record_skips,
    split_push,
    wants_paths,
    without_content,
)
from gitgates.engine.run import run_plan
from gitgates.git.index import named_index
from gitgates.session.git_hooks import SIGNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.policy import Need
    from gitgates.session.git_hooks import HookCall


def needs(_config: Config) -> tuple[Need, ...]:
    """Return nothing: the policy is passive."""
    return ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Run the gates of the hook in the working tree, or on the pushed commits."""
    event, hook = call.event, call.hook
    if not hook.gates or call.is_dry:
        return so_far
    if event.name == "pre-push" and event.refs:
        call.decision = _run_push(call)
    elif choose_view(event, hook) != "checkout":
        call.decision = _run_here(call, event, as_committed=True)
    else:
        call.decision = run_in_checkout(call, event)
    return so_far.joined(Verdict(call.decision.verdict))


def _plan(call: HookCall, event: Event) -> Plan:
    call.plan = plan_event(call, event)
    record_skips(call.plan, call.repo, call.skips)
    return call.plan


def _run_here(call: HookCall, event: Event, *, as_committed: bool = False) -> Decision:
    """Check the working tree. `as_committed`: with the configuration being committed."""

    def plan_again(note: str) -> tuple[Plan, Config]:
        call.configure(load(event.root_abs, call.repo.config_cache_abs) or Config())
        noted_event = event._replace(note="; ".join(filter(None, (event.note, note))))
        call.plan = plan_event(call, noted_event)
        return call.plan, call.config

    options = call.options
    if as_committed:
        options = options._replace(as_committed=plan_again)
    return run_plan(_plan(call, event), call.config, call.repo, call.listener, options=options)


def _run_push(call: HookCall) -> Decision:
    """Check each pushed commit: in the working tree if that is equal, else in a checkout."""
    from gitgates.git.paths import is_as_committed, pushed_commits  # not needed before a commit

    decisions: list[Decision] = []
    commits = pushed_commits(call.repo, call.event.refs)
    event = call.event._replace(refs=tuple(r for r in call.event.refs if commits.get(r.local_id)))
    if not event.refs and event.host == "git":
        call.plan = without_content(_plan(call, event))
        return run_plan(call.plan, call.config, call.repo, call.listener, options=call.options)
    if choose_view(event, call.hook) != "checkout":  # or all files are named, and no commit
        return _run_here(call, event, as_committed=True)
    parts = split_push(event, commits)
    for tip, part in parts[:1] if call.is_once else parts:
        if is_as_committed(call.repo, tip):
            decisions.append(_run_here(call, part))
        else:
            call.say(f"checking what is pushed to {describe_refs(part)} in a private checkout")
            decisions.append(run_in_checkout(call, part, tip))
        if decisions[-1].verdict < BLOCK and is_lent(call.config, SIGNED):
            from gitgates.session.push_record import record_push  # only where proofs are signed

            record_push(call, tip, part, decisions[-1])
        if decisions[-1].verdict >= BLOCK and call.hook.strategy == "sequence":
            break
    return join_decisions(tuple(decisions))


def run_in_checkout(call: HookCall, event: Event, tip: str = "") -> Decision:
    """Check a commit, or without one the index being committed, in a private checkout."""
    # Cold: only where the working tree is not what is to be checked.
    from gitgates.worktree.checkouts import check_out, check_out_index
    from gitgates.worktree.setup import worktree_settings

    repo, settings = call.repo, worktree_settings(call.config)
    plan = _plan(call, event)
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
            plan = call.plan = plan_event(call, event._replace(files_abs=files_abs))
        options = call.options._replace(checkout=checkout.repo)
        decision = run_plan(plan, call.config, repo, call.listener, options=options)
        if decision.verdict >= BLOCK and not settings.setup:
            from gitgates.worktree.missing import setup_hints  # nothing is missing in most

            for hint in setup_hints(repo, call.config, event.name):
                call.say(hint)
    return decision


def plan_event(call: HookCall, event: Event) -> Plan:
    """Return the plan of an event; git is asked for paths if a gate needs them."""
    config, hook, repo = call.config, call.hook, call.repo
    is_named = HOOK_POINTS[event.name].scope in ("staged", "pushed")
    # Where unstaged work is hidden, git is asked for the staged paths as well.
    is_needed = wants_paths(config, hook) or (is_named and choose_view(event, hook) != "hide")
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
