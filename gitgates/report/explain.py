"""A plan as text or as data: every gate, why it runs or not, its actions. Pure.

Cold: no hook loads this.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from gitgates.clean import counted, utf8, visible_line
from gitgates.engine.plan import takes_paths
from gitgates.lifecycle import HOOK_POINTS
from gitgates.policy import policy_gates
from gitgates.report.documents import VERSION
from gitgates.types import ACTIONS, Gate, Plan, Step

_FIRST_PATHS = 3
_LONGEST_COMMAND = 100
_MINUTE_S = 60
_SAME_FIELDS = (
    *("description", "command", "pre_commit", "working_dir", "timeout_s", "on_pass", "on_fail"),
    *("priority", "writes", "required"),
)
_DEEPEST = 60  # columns that a chain is indented by


def plan_text(plan: Plan, *, colour: bool = False) -> str:
    """Return a plan for people: listed gates in order, chained ones below those that call them."""
    steps = {step.gate.name: step for step in plan.steps}
    lines = [("", "", line) for line in (_heading(plan), *map("note: {}".format, plan_notes(plan)))]
    told: set[str] = set()
    for number, name in enumerate(plan.listed, 1):
        lines += [("", "", ""), *_gate_lines(steps, name, f"{number}. ", told)]
    bold = "\x1b[1m{}\x1b[0m" if colour else "{}"
    return "".join(
        f"{before}{bold.format(visible_line(name)) if name else ''}{visible_line(rest)}\n"
        for before, name, rest in lines
    )


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data; gates that only a chain reaches have `listed` false."""
    callers: dict[str, list[str]] = {}
    for step in plan.steps:
        for name in {step.gate.on_pass, step.gate.on_fail}:
            callers.setdefault(name, []).append(step.gate.name)
    return {
        "version": VERSION,
        "hook": plan.event.name,
        "configured_as": plan.hook.name,
        "strategy": plan.hook.strategy,
        "paths": [utf8(path) for path in plan.event.paths or ()],
        "gates": [_step_fields(step, plan, callers) for step in plan.steps],
        "order": list(plan.listed),
        "notes": list(plan_notes(plan)),
    }


def plan_notes(plan: Plan) -> tuple[str, ...]:
    """Return notes on the plan as a whole."""
    notes = [step.note for step in plan.steps if step.note]
    name = plan.event.name
    if plan.event.note:
        notes.insert(0, plan.event.note)
    if plan.hook.name != name:
        notes.insert(0, f"{name} has no gates of its own, so that those of {plan.hook.name} run")
    point = HOOK_POINTS[name]
    about = [step.gate.name for step in plan.steps if takes_paths(step.gate)]
    if point.host == "git" and point.scope == "none" and about:
        gates = ", ".join(f"`{gate}`" for gate in about)
        notes.append(f"git gives {name} no paths: from the hook itself, {gates} would be skipped")
    return tuple(notes)


def _heading(plan: Plan) -> str:
    paths, gone = plan.event.paths or (), plan.event.gone
    on = f"on {counted(len(paths), 'path')}: {_first(paths)}" if paths else "no path has changed"
    if gone and not paths:
        on = f"on {counted(len(gone), 'deleted path')}: {_first(gone)}"
    return f"{plan.event.name}: {counted(len(plan.listed), 'gate')}, {plan.hook.strategy}; {on}"


def _gate_lines(
    steps: dict[str, Step], listed: str, mark: str, told: set[str]
) -> list[tuple[str, str, str]]:
    """Return the lines of a listed gate and of its chains: indentation, name, rest.

    A loop, not a recursion: a chain may be longer than the interpreter's stack.
    """
    lines: list[tuple[str, str, str]] = []
    waiting = [("", mark, listed)]  # indent, what stands before it, the gate or action
    while waiting:
        indent, mark, name = waiting.pop()
        if name in ACTIONS:
            lines.append((f"{indent}{mark}", "", name))
            continue
        step, is_told = steps[name], name in told
        arrow = "→ " if indent else ""
        above = " (as above)" if is_told else ""
        lines.append((f"{indent}{mark}{arrow}", name, f": {why(step)}{above}"))
        told.add(name)
        if is_told or step.fault or name in policy_gates():
            continue  # the last two have no command, no limits and no actions
        inner = f"{indent}   " if len(indent) < _DEEPEST else indent
        lines += [(inner, "", line) for line in _facts(step.gate)]
        waiting.append((inner, f"{'on fail':<9} ", step.gate.on_fail))
        waiting.append((inner, f"{'on pass':<9} ", step.gate.on_pass))
    return lines


def why(step: Step) -> str:
    """Return whether a gate runs, why, and on which paths."""
    if step.fault:
        return f"stops the run when it is reached: {step.fault}"
    if step.skip:
        return f"skipped: {step.skip}"
    if not takes_paths(step.gate):
        return "runs, whatever has changed"
    if not step.paths:
        return "runs: what is deleted matches"
    return f"runs on {counted(len(step.paths), 'path')}: {_first(step.paths)}"


def _facts(gate: Gate) -> list[str]:
    facts = [("command", command_text(gate)), ("timeout", _time(gate.timeout_s))]
    if gate.description:
        facts.insert(0, ("checks", gate.description.strip().partition("\n")[0]))
    if gate.working_dir != ".":
        facts.append(("in", gate.working_dir))
    if gate.priority != "normal":
        facts.append(("priority", gate.priority))
    if also := _traits(gate):
        facts.append(("also", also))
    return [f"{label:<9} {value}" for label, value in facts]


def _traits(gate: Gate) -> str:
    """Return the special settings of a gate."""
    traits = {
        "is given the paths": gate.pass_files,
        "is given the hook's arguments and input": gate.pass_hook_input,
        "may change files, so that it runs alone": gate.writes,
        "is required": gate.required,
        f"sets {', '.join(name for name, _value in gate.env)}": bool(gate.env),
        f"git_env = {gate.git_env}": gate.git_env != "auto",
    }
    return "; ".join(trait for trait, holds in traits.items() if holds)


def command_text(gate: Gate) -> str:
    """Return what a gate runs on one line, shortened."""
    if gate.pre_commit is not None:
        ids = " ".join(gate.pre_commit) or "all hooks"
        return f"{gate.runner} run: {ids}"
    text = gate.command if isinstance(gate.command, str) else shlex.join(gate.command or ())
    text = _quoted(text)
    return text if len(text) <= _LONGEST_COMMAND else text[: _LONGEST_COMMAND - 1] + "…"


def _step_fields(step: Step, plan: Plan, callers: dict[str, list[str]]) -> dict[str, Any]:
    gate = step.gate
    return {
        "name": gate.name,
        "listed": gate.name in plan.listed,
        "called_by": callers.get(gate.name, []),
        "runs": not (step.skip or step.fault),
        "why": why(step),
        "fault": step.fault,
        "takes_paths": takes_paths(gate),
        "paths": [utf8(path) for path in step.paths],
        "runner": gate.runner if gate.pre_commit is not None else None,
        **{field: getattr(gate, field) for field in _SAME_FIELDS},
    }


def _first(paths: tuple[str, ...]) -> str:
    shown = ", ".join(map(_quoted, paths[:_FIRST_PATHS]))
    rest = len(paths) - _FIRST_PATHS
    return f"{shown} and {rest} more" if rest > 0 else shown


def _quoted(text: str) -> str:
    """Return text, quoted if it would break the line or the terminal."""
    is_fine = visible_line(text) == text
    return text if is_fine else json.dumps(utf8(text), ensure_ascii=False)


def _time(seconds: float) -> str:
    if seconds < _MINUTE_S or seconds % _MINUTE_S:
        return f"{seconds:g} s"
    return f"{seconds / _MINUTE_S:g} min"
