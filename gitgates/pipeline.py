"""Handle one event: configuration, plan, run, decision. The one place that calls them in order."""

from __future__ import annotations

from gitgates.config.load import load
from gitgates.engine.environment import enter, is_active
from gitgates.engine.plan import find_hook, make_plan, wants_paths
from gitgates.environ import skipped_gates
from gitgates.errors import StateError
from gitgates.record import Record
from gitgates.runner import World, run_plan
from gitgates.shelter import Site, catch_up
from gitgates.system.ledger import record
from gitgates.system.scope import paths_of
from gitgates.types import Config, Decision, Event, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Hook

ACTIVE = "GITGATES_ACTIVE"


class Handled(Record):
    """What became of an event. Without a plan nothing had to run, and `note` may say why."""

    plan: Plan | None = None
    decision: Decision | None = None
    note: str = ""


def handle(event: Event, world: World) -> Handled:
    """Handle an event as the configuration of its repository says.

    Raises: GitgatesError for each expected failure, configuration problems among them.
    """
    if is_active(world.env.get(ACTIVE, ""), event.name, world.roots.git_dir_abs):
        return Handled(note=f"{event.name} is running here already; not run again inside itself")
    catch_up(Site(world.roots, world.git, world.env, world.say))
    config = load(event.root_abs, f"{world.roots.state_abs}/config.marshal")
    if config is None:
        return Handled(note="no [tool.gitgates] here; nothing was checked (gitgates init adds it)")
    hook = find_hook(config, event.name)
    if hook is None or not hook.gates:
        return Handled()
    if event.name == "pre-push" and not event.refs:
        return Handled()  # nothing is pushed
    plan = plan_event(config, hook, event, world)
    record_skips(plan, world)
    return Handled(plan=plan, decision=run_plan(plan, config, inside(world, event)))


def plan_event(config: Config, hook: Hook, event: Event, world: World) -> Plan:
    """Return the plan of an event, its paths asked from git where a gate wants them."""
    if event.paths is None and wants_paths(config, hook):
        event = event._replace(paths=paths_of(event, world.git, world.roots))
    return make_plan(config, hook, event, skipped_gates(world.env))


def record_skips(plan: Plan, world: World) -> None:
    """Write to the ledger which gates a person left out of this run."""
    skips = skipped_gates(world.env)
    skipped = [step.gate.name for step in plan.steps if step.skip and step.gate.name in skips]
    if not skipped:
        return
    fields = {"hook": plan.event.name, "gates": skipped, "by": skips[skipped[0]]}
    try:
        record(world.roots.shared_state_abs, "skip", {**fields, "root": plan.event.root_abs})
    except OSError as error:
        raise StateError(
            f"{world.roots.shared_state_abs}: a skip cannot be recorded: {error.strerror}",
            "Run without GITGATES_SKIP and SKIP, or make the folder writable.",
        ) from error


def inside(world: World, event: Event) -> World:
    """Return the world that gates of this event run in: one that knows that it is running."""
    active = enter(world.env.get(ACTIVE, ""), event.name, world.roots.git_dir_abs)
    is_nested = world.roots.git_dir_abs in world.env.get(ACTIVE, "")
    return world._replace(env={**world.env, ACTIVE: active}, is_nested=is_nested)
