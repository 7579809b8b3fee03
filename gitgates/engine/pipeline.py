"""Handle one event: configuration, plan, run, decision. The one place that calls them in order."""

from __future__ import annotations

import os
import time

from gitgates.config.load import FILES, checked, load, read_files
from gitgates.engine.command import active_pids, enter, without_git
from gitgates.engine.context import World
from gitgates.engine.plan import (
    by_tip,
    choose_view,
    describe_refs,
    find_hook,
    join,
    make_plan,
    matches_deleted,
    wants_paths,
)
from gitgates.engine.runner import run_plan
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.environ import skipped_gates
from gitgates.errors import StateError
from gitgates.git.index import named_index
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.types import ALLOW, BLOCK, Config, Decision, Event, Hook, Plan
from gitgates.worktree.isolate import catch_up
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.run import Git

ACTIVE = "GITGATES_ACTIVE"


class Handled(Record):
    """What became of an event. Without a plan nothing had to run, and `note` may say why."""

    plan: Plan | None = None
    decision: Decision | None = None
    note: str = ""
    config: Config | None = None  # that the plan is from

    @property
    def has_results(self) -> bool:
        """Whether something did not pass, which is to be written down."""
        if self.decision is None:
            return False
        ends = {visit.result.status for visit in self.decision.visits}
        return self.decision.verdict != ALLOW or not ends <= {"passed", "skipped"}


def handle(event: Event, world: World, only: tuple[str, ...] = ()) -> Handled:
    """Handle an event as the configuration of its repository says.

    `only`: these gates run, in place of those of the hook.

    Raises: GitgatesError for each expected failure, configuration problems among them.
    """
    world = world._replace(began_ns=time.time_ns())
    if is_running_here(world.env, world.repo.git_dir_abs, event.name):
        return Handled(note=f"{event.name} is running here already; not run again inside itself")
    catch_up(world.repo, world.say)
    config = load(event.root_abs, _cache(world))
    hook = _hook_of(config, event, only)
    if event.host == "git" and event.name in BEFORE_A_COMMIT and not (hook and hook.gates):
        # Taken away in an edit that is not part of the commit, gates are still asked for by it.
        config = committed_config(world.git) or config
        hook = _hook_of(config, event, only)
    if config is None:
        return Handled(note="no [tool.gitgates] here; nothing was checked (gitgates init adds it)")
    if hook is None or not hook.gates:
        return Handled()
    if event.name == "pre-push" and not event.refs:
        return Handled()  # nothing is pushed
    if choose_view(event, hook) != "checkout":
        return _handle_here(config, hook, event, world, only=only)
    if event.name == "pre-push":
        return _handle_push(config, hook, event, world)
    return _handle_in_checkout(config, hook, event, (world, ""))


def _hook_of(config: Config | None, event: Event, only: tuple[str, ...]) -> Hook | None:
    hook = find_hook(config, event.name) if config else None
    return (hook or Hook(name=event.name))._replace(gates=only) if config and only else hook


def is_running_here(env: Mapping[str, str], git_dir_abs: str, hook: str = "") -> bool:
    """Tell whether a run further up, which still lives, runs this hook (empty: any) here."""
    pids = active_pids(env.get(ACTIVE, ""), git_dir_abs, hook)
    if not pids:
        return False
    return any(map(is_alive, pids))


def _handle_here(
    config: Config, hook: Hook, event: Event, world: World, *, only: tuple[str, ...] = ()
) -> Handled:
    plan = plan_event(config, hook, event, world)
    record_skips(plan, world)
    ran = [(plan, config)]

    def as_committed() -> tuple[Plan, Config]:
        shown = load(event.root_abs, _cache(world)) or Config()
        named = _hook_of(shown, event, only) or Hook(name=event.name)
        note = "the configuration has changes that are not part of the commit; they do not count"
        told = event._replace(note="; ".join(filter(None, (event.note, note))))
        ran[0] = plan_event(shown, named, told, world), shown
        return ran[0]

    decision = run_plan(plan, config, inside(world, event), as_committed)
    plan, config = ran[0]
    return Handled(plan=plan, decision=decision, config=config)


def committed_config(git: Git) -> Config | None:
    """Return the configuration that is being committed, where it is not the working tree's.

    Raises: ConfigError where that has problems.
    """
    changed = git.names("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--", *FILES)
    if not changed:
        return None
    read = read_files(git.cwd_abs)
    staged = [git.ask("cat-file", "blob", f":{name}") for name in FILES]
    raw = tuple(
        done.stdout if name in changed and not done.exit_status else content
        for name, done, content in zip(FILES, staged, read, strict=True)
    )
    return checked(raw)


def _cache(world: World) -> str:
    return f"{world.repo.state_abs}/config.marshal"


def _handle_push(config: Config, hook: Hook, event: Event, world: World) -> Handled:
    """Check each commit that is pushed: where the working tree is just that, there; else apart."""
    from gitgates.git.paths import is_as_committed  # not needed before a commit

    handled: list[Handled] = []
    for tip, part in by_tip(event):
        if not tip or is_as_committed(world.git, tip):
            handled.append(_handle_here(config, hook, part, world))
        else:
            world.say(f"checking what is pushed to {describe_refs(part)} in a private checkout")
            handled.append(_handle_in_checkout(config, hook, part, (world, tip)))
        decision = handled[-1].decision
        if decision and decision.verdict >= BLOCK and hook.strategy == "sequence":
            break
    decisions = tuple(one.decision for one in handled if one.decision)
    return handled[-1]._replace(decision=join(decisions))


def _handle_in_checkout(
    config: Config, hook: Hook, event: Event, place: tuple[World, str]
) -> Handled:
    """Check a commit, or the index being committed, in a private checkout."""
    # Cold: only where the working tree is not what is to be checked.
    from gitgates.git.checkout import lay_out, lay_out_index

    world, tip = place
    plan = plan_event(config, hook, event, world)
    record_skips(plan, world)
    index_abs, _is_other = named_index(world.repo)
    laid_out = (
        lay_out(world.repo, tip, link=config.link)
        if tip
        else lay_out_index(world.repo, index_abs, link=config.link)
    )
    with laid_out as checkout:
        for note in checkout.notes:
            world.say(note)
        there = checkout.repo._replace(env=without_git(world.env))
        inner = inside(world, event)._replace(git=there.git, in_checkout=True)
        return Handled(plan=plan, decision=run_plan(plan, config, inner), config=config)


def plan_event(config: Config, hook: Hook, event: Event, world: World) -> Plan:
    """Return the plan of an event, its paths asked from git where a gate wants them."""
    is_named = HOOK_POINTS[event.name].scope in ("staged", "pushed")
    # Where unstaged work is hidden, git tells what is staged as well.
    is_needed = wants_paths(config, hook) or (is_named and choose_view(event, hook) != "hide")
    if event.paths is None and is_needed:
        from gitgates.git.paths import with_paths  # only where a gate is about paths

        event = with_paths(event, world.repo)
    plan = make_plan(config, hook, event, skipped_gates(world.env))
    is_framework = event.host == "pre-commit" and is_named
    if is_framework and any(step.skip and matches_deleted(step.gate) for step in plan.steps):
        # The framework does not name deleted files; git is asked only where that may matter.
        from gitgates.git.paths import with_paths

        gone = with_paths(event, world.repo).gone
        plan = make_plan(config, hook, event._replace(gone=gone), skipped_gates(world.env))
    return plan


def record_skips(plan: Plan, world: World) -> None:
    """Write to the ledger which gates a person left out of this run."""
    skips = skipped_gates(world.env)
    skipped = [step.gate.name for step in plan.steps if step.skip and step.gate.name in skips]
    if not skipped:
        return
    from gitgates.store.log import write_ledger  # seldom needed, and it loads json

    fields = {"hook": plan.event.name, "gates": skipped, "by": skips[skipped[0]]}
    try:
        write_ledger(world.repo.shared_state_abs, "skip", {**fields, "root": plan.event.root_abs})
    except OSError as error:
        raise StateError(
            f"{world.repo.shared_state_abs}: a skip cannot be recorded: {error.strerror}",
            "Run without GITGATES_SKIP and SKIP, or make the folder writable.",
        ) from error


def inside(world: World, event: Event) -> World:
    """Return the world that gates of this event run in: one that knows that it is running."""
    git_dir_abs = world.repo.git_dir_abs
    active = enter(world.env.get(ACTIVE, ""), event.name, git_dir_abs, os.getpid())
    is_nested = is_running_here(world.env, git_dir_abs)
    return world._replace(env={**world.env, ACTIVE: active}, is_nested=is_nested)
