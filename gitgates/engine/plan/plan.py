"""Make the plan of an event: which gates run, on which paths, in which view of the files."""

from __future__ import annotations

import time

from gitgates.core.errors import StateError
from gitgates.core.lifecycle import ENDING_HOOKS, HOOK_POINTS, STANDS_IN_FOR
from gitgates.core.types import ACTIONS, PRIORITIES, Config, Decision, Event, Gate, Hook, Plan, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Repo

    Selected: TypeAlias = dict[tuple[tuple[str, ...] | None, tuple[str, ...]], tuple[str, ...]]

REUSE = "GITGATES_REUSE"  # the variable that switches reuse off with 0, or has it audited
REMOTE = "GITGATES_REMOTE"  # that switches the server off with 0, or with 1 has it used first
AUDIT, OFF = "audit", "0"
RUN_BY_FRAMEWORK = "pre-commit runs its hooks itself here"
NO_COMMIT = "no commit is pushed"
_AGAIN = {"staged": "commit", "pushed": "push", "caller": "run"}


def find_hook(config: Config, name: str) -> Hook | None:
    """Return the configuration of a hook, or of the hook that it replaces."""
    by_name = {hook.name: hook for hook in config.hooks}
    return by_name.get(name) or by_name.get(STANDS_IN_FOR.get(name, ""))


def takes_paths(gate: Gate) -> bool:
    """Return whether a gate depends on paths; any other always runs."""
    selects = gate.selection.files is not None or bool(
        gate.selection.exclude or gate.selection.types or gate.selection.types_or
    )
    return selects or is_given_paths(gate)


def is_given_paths(gate: Gate) -> bool:
    """Return whether a gate checks only the paths that it is given."""
    return gate.program.pass_files or gate.program.pre_commit is not None


def matches_deleted(gate: Gate) -> bool:
    """Return whether deleted paths match a gate: one that has patterns, and is given no paths."""
    return takes_paths(gate) and not is_given_paths(gate)


def has_types(plan: Plan) -> bool:
    """Return whether a plan depends on what is in the files."""
    return any(step.gate.selection.types or step.gate.selection.types_or for step in plan.steps)


def wants_paths(config: Config, hook: Hook) -> bool:
    """Return whether any gate that the hook can reach depends on paths."""
    gates = {gate.name: gate for gate in config.gates}
    return any(takes_paths(gates[name]) for name in reachable(hook.gates, gates) if name in gates)


def make_plan(config: Config, hook: Hook, event: Event, skips: Mapping[str, str]) -> Plan:
    """Return the plan of `event`. `skips`: gate name → who requests it."""
    gates = {gate.name: gate for gate in config.gates}
    order = [
        PRIORITIES.index(gates[name].schedule.priority) if name in gates else 2
        for name in hook.gates
    ]
    names = tuple(
        name
        for _rank, name in sorted(zip(order, hook.gates, strict=True), key=lambda pair: pair[0])
    )
    selected: Selected = {}
    steps = tuple(
        _make_step(gates.get(name), name, event, skips, selected=selected)
        for name in reachable(names, gates)
    )
    if any(step.gate.schedule.after for step in steps):
        chains = {name: reachable((name,), gates) for name in names}
        steps = _with_order(chains, steps, gates)
        names = _in_order(names, chains, steps)
    strays = [
        _unknown(name, by, tuple(gates))
        for name, by in skips.items()
        # SKIP is about hooks of the pre-commit framework, too.
        if by != "SKIP" and not is_gate(name, config)
    ]
    if strays:
        event = event._replace(note="; ".join(part for part in (event.note, *strays) if part))
    return Plan(event=event, hook=hook, listed=names, steps=steps, config_digest=config.digest)


def reachable(names: tuple[str, ...], gates: Mapping[str, Gate]) -> tuple[str, ...]:
    """Return the named gates and those that their actions name, defined or not, each once."""
    reached: dict[str, None] = {}
    waiting = list(names)
    for name in waiting:  # which grows while it is walked
        if name in reached:
            continue
        reached[name] = None
        if gate := gates.get(name):
            waiting += [a for a in (gate.actions.on_pass, gate.actions.on_fail) if a not in ACTIONS]
    return tuple(reached)


def _with_order(
    chains: Mapping[str, tuple[str, ...]], steps: tuple[Step, ...], gates: Collection[str]
) -> tuple[Step, ...]:
    """Return the steps with the listed gates that each waits for.

    `chains` has what the actions of each listed gate lead to, itself included: one waits for all
    of that. `gates` are those that are defined.
    """
    ordered = []
    for step in steps:
        wanted, fault = {*step.gate.schedule.after}, step.fault
        if unknown := [other for other in step.gate.schedule.after if other not in gates]:
            fault = f"`after` of gate `{step.gate.name}` names an unknown gate: `{unknown[0]}`"
        after = tuple(head for head, chain in chains.items() if not wanted.isdisjoint(chain))
        ordered.append(step._replace(after=after, fault=fault))
    return tuple(ordered)


def _in_order(
    listed: tuple[str, ...], chains: Mapping[str, tuple[str, ...]], steps: tuple[Step, ...]
) -> tuple[str, ...]:
    """Return the listed names so that each gate comes after those that its chain waits for.

    If two would have to wait for each other, the order of the list decides.
    """
    after = {step.gate.name: step.after for step in steps}
    before = {
        head: {other for name in chain for other in after[name]} - {head}
        for head, chain in chains.items()
    }
    waiting, order = list(listed), []
    while waiting:
        name = next((name for name in waiting if before[name].isdisjoint(waiting)), waiting[0])
        waiting.remove(name)
        order.append(name)
    return tuple(order)


def _make_step(
    gate: Gate | None, name: str, event: Event, skips: Mapping[str, str], *, selected: Selected
) -> Step:
    if gate is None:
        return _without_command(name, event)
    if gate.program.command is None and gate.program.pre_commit is None:
        return Step(gate=gate, fault=f"gate `{name}` has no command")
    if event.within_framework and runs_framework(gate):
        return Step(gate=gate, skip=RUN_BY_FRAMEWORK)
    step = _quarantined(gate) if gate.actions.quarantine_until else Step(gate=gate)
    gate, note = step.gate, ""
    if name in skips:
        if not gate.actions.required:
            return step._replace(skip=f"named in {skips[name]}")
        note = f"gate `{name}` is required: {skips[name]} does not skip it"
    step = step._replace(note=note)
    if not takes_paths(gate):
        return step
    if event.paths is None:
        return step._replace(skip=f"{event.name} has no paths")
    paths, deleted = _select(event, gate, selected)
    if not paths and deleted:
        return step  # deleted files may break what needed them
    return step._replace(paths=paths, skip="" if paths else _no_match(event, gate))


def _quarantined(gate: Gate) -> Step:
    """Return the step of a gate whose failures only warn, or did until some day."""
    if time.strftime("%Y-%m-%d") > gate.actions.quarantine_until:
        return Step(
            gate=gate, quarantine=f"its quarantine ended on {gate.actions.quarantine_until}"
        )
    gate = gate.changed(on_fail="CONTINUE", terminal=False)
    return Step(gate=gate, quarantine=f"in quarantine until {gate.actions.quarantine_until}")


def _select(
    event: Event, gate: Gate, selected: Selected
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths that a gate is about; if there are none, the deleted ones."""
    from gitgates.engine.plan.match import select  # if no gate has patterns, none are matched

    patterns = gate.selection.files, gate.selection.exclude
    if patterns not in selected:  # several gates often have the same
        selected[patterns] = select(event.paths or (), *patterns)
    paths, deleted = selected[patterns], event.deleted if matches_deleted(gate) else ()
    if gate.selection.types or gate.selection.types_or:
        from gitgates.config.file_types import of_types  # few gates have types

        folder = event.files_abs or event.root_abs
        paths, deleted = (of_types(some, gate, folder) for some in (paths, deleted))
    return paths, () if paths or not deleted else select(deleted, *patterns)


def runs_framework(gate: Gate) -> bool:
    """Return whether a gate runs all that the pre-commit framework would run by itself."""
    is_about_all = gate.selection.files is None and not (
        gate.selection.exclude or gate.selection.types or gate.selection.types_or
    )
    return gate.program.pre_commit == () and is_about_all


def framework_gate(config: Config, hook: str) -> str:
    """Return the gate of a hook that does so; empty if there is none."""
    configured = find_hook(config, hook)
    names = configured.gates if configured else ()
    return next((g.name for g in config.gates if g.name in names and runs_framework(g)), "")


def is_gate(name: str, config: Config) -> bool:
    """Return whether a name is that of a gate, defined or built in."""
    return any(gate.name == name for gate in config.gates) or _is_policy(name)


def _unknown(name: str, by: str, defined: tuple[str, ...]) -> str:
    """Return the message about an unknown gate to skip."""
    from gitgates.config.values import did_you_mean  # only for a mistake

    hint = did_you_mean(name, defined)
    return f"{by} names an unknown gate: `{name}`{hint and '. '}{hint}"


def _is_policy(name: str) -> bool:
    from gitgates.core.policy import policy_gates  # a git hook lists gates with commands

    return name in policy_gates()


def _without_command(name: str, event: Event) -> Step:
    gate = Gate(name=name)
    if not _is_policy(name):
        return Step(gate=gate, fault=f"gate `{name}` is listed but not defined")
    if event.name not in ENDING_HOOKS:
        return Step(gate=gate, fault=f"the built-in gate `{name}` does not apply to {event.name}")
    return Step(gate=gate, skip="it is evaluated when an agent stops")


def _no_match(event: Event, gate: Gate) -> str:
    if not event.paths:
        return "files were only deleted" if event.deleted else why_no_path(event)
    if gate.selection.files == ():
        return "`files` is empty"
    return "no file matches"


def why_no_path(event: Event) -> str:
    """Return why an event has no path: nothing has changed, or others were asked for by hand."""
    is_selected = event.host == "manual" and not (event.with_untracked or event.base)
    return "no file matches" if is_selected else "no file has changed"


def action_to_repeat(event: Event) -> str:
    """Return the command that repeats a hook about the content of files; of others, ""."""
    point = HOOK_POINTS.get(event.name)  # asking for opinions is an event of no host
    scope = point.scope if point else ""
    if event.payload or scope not in _AGAIN:
        return ""  # an agent continues after its event, with the files as they are then
    return "run" if event.host == "manual" else _AGAIN[scope]


def split_push(event: Event, commits: Mapping[str, str]) -> tuple[tuple[str, Event], ...]:
    """Return each pushed commit with the event of its refs alone, in git's order.

    `commits`: pushed id → commit. An annotated tag may lead to the tip of a branch.
    """
    events: dict[str, Event] = {}
    for ref in event.refs:
        commit = commits[ref.local_id]
        part = events.get(commit, event._replace(refs=()))
        events[commit] = part._replace(refs=(*part.refs, ref))
    return tuple(events.items())


def without_content(plan: Plan) -> Plan:
    """Return the plan of a push of no commit: only gates that read what git says of it run."""
    return plan._replace(
        steps=tuple(
            step
            if step.skip or step.gate.program.pass_hook_input
            else step._replace(skip=NO_COMMIT)
            for step in plan.steps
        )
    )


def joined_plan(plan: Plan, other: Plan) -> Plan:
    """Return a plan followed by another one."""
    names, steps = (*plan.listed, *other.listed), (*plan.steps, *other.steps)
    return plan._replace(listed=names, steps=steps)


def join_decisions(decisions: tuple[Decision, ...]) -> Decision:
    """Return what several decisions (at least one) mean together: the strongest wins."""
    strongest = max(decisions, key=lambda decision: decision.verdict)
    return strongest._replace(
        visits=tuple(visit for decision in decisions for visit in decision.visits),
        notes=tuple(dict.fromkeys(note for d in decisions for note in d.notes)),
    )


def describe_refs(event: Event) -> str:
    """Return the refs that a push changes, for display: `main, v1`."""
    names = (ref.remote_ref or ref.local_ref for ref in event.refs)
    return ", ".join(name.removeprefix("refs/heads/").removeprefix("refs/tags/") for name in names)


def record_skips(plan: Plan, repo: Repo, skips: Mapping[str, str]) -> None:
    """Write to the ledger which gates a person skipped in this run, and by what."""
    skipped = [step.gate.name for step in plan.steps if step.skip and step.gate.name in skips]
    if not skipped:
        return
    from gitgates.store.log import write_ledger  # seldom needed, and it loads json

    by = ", ".join(dict.fromkeys(skips[name] for name in skipped))
    fields = {"hook": plan.event.name, "gates": skipped, "by": by}
    try:
        write_ledger(repo.shared_state_abs, "skip", {**fields, "root": plan.event.root_abs})
    except OSError as error:
        raise StateError(
            f"{repo.shared_state_abs}: cannot record a skip: {error.strerror}",
            "Skip no gate, or make the folder writable.",
        ) from error


def looks_up(steps: Iterable[Step]) -> bool:
    """Return whether a run looks for passes of its gates at all."""
    return any(is_reusable(step.gate) for step in steps if not step.skip)


def is_reusable(gate: Gate) -> bool:
    """Return whether passes of a gate may be reused: nothing but files goes into it."""
    has_other_input = (
        gate.program.pass_hook_input or gate.measures.metrics or gate.program.git_env == "commit"
    )
    return bool(gate.reuse.mode) and not has_other_input
