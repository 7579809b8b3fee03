"""A run, or a plan, as others read it: JSON, JSON lines, JUnit XML, and the plan as text.

Cold: no git hook loads this. Field names are part of the interface: `version` goes up when one
is removed or changes its meaning.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from gitgates.core.clean import counted, first_few, sanitise, utf8, visible, visible_line
from gitgates.core.errors import GitgatesError
from gitgates.core.failure import Failure
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import policy_gates
from gitgates.core.types import ACTIONS, BLOCK, Decision, Gate, GateResult, Plan, Step, Visit
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import takes_paths, why_no_path
from gitgates.engine.plan.walk import CANCELLED, describe
from gitgates.engine.run.run import InterruptedRun
from gitgates.proc.resources import Wait
from gitgates.report.result import VERSION, attempt_of, result_fields, run_fields
from gitgates.report.text import Terminal

PLAN_VERSION = 1
_ERRORS = ("timed-out", "killed", "not-started")  # of JUnit; others are failures
_FIRST_PATHS = 3
_LONGEST_COMMAND = 100
_MINUTE_S = 60
_SAME_FIELDS = (
    *("description", "command", "pre_commit", "working_dir", "timeout_s", "on_pass", "on_fail"),
    *("priority", "writes", "required"),
)
_DEEPEST = 60  # columns that a chain is indented by


def error_document(error: GitgatesError) -> dict[str, Any]:
    """Return the document for a run without a decision."""
    error_fields = {"message": utf8(error.message), "hint": utf8(error.hint)}
    fields = {"version": VERSION, "exit_status": error.exit_status, "verdict": None}
    return {**fields, "error": error_fields}


class JsonDocument(Listener):
    """The listener that writes one document at the end."""

    def __init__(self, terminal: Terminal, began_s: float) -> None:
        self._terminal = terminal
        self._began_s = began_s  # since the epoch

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return the whole run."""
        return self._end("run-ended", self._run(decision, plan))

    def failed(self, error: GitgatesError) -> bytes:
        """Return why no decision was made, and the results until a signal."""
        run = self._run(error.decision, error.plan) if isinstance(error, InterruptedRun) else {}
        return self._end("run-failed", {**run, **error_document(error)})

    def _run(self, decision: Decision, plan: Plan) -> dict[str, Any]:
        run = run_fields(attempt_of(decision, plan, self._began_s))
        return {**run, "exit_status": 1 if decision.verdict >= BLOCK else 0}

    def _end(self, event: str, document: dict[str, Any]) -> bytes:  # noqa: ARG002 - as in lines
        return json.dumps(document, indent=2).encode() + b"\n"


class JsonLines(JsonDocument):
    """The listener that writes a line for each event, numbered from 1."""

    _number = 0

    def planned(self, plan: Plan) -> None:
        """Write the plan."""
        fields = {"hook": plan.event.name, "gates": list(plan.listed)}
        self._terminal.write(self._line("run-started", fields))

    def started(self, gate: str) -> None:
        """Write that a gate starts."""
        self._terminal.write(self._line("gate-started", {"name": gate}))

    def waiting(self, gate: str, wait: Wait) -> None:
        """Write what a gate waits for."""
        fields = {"for": wait.what, "place": wait.place, "expected_seconds": wait.left_s}
        holder = {"holder": wait.holder} if wait.holder else {}
        self._terminal.write(self._line("gate-waiting", {"name": gate, **fields, **holder}))

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - as other listeners
        """Write the result of a gate."""
        self._terminal.write(self._line("gate-ended", result_fields(result)))

    def message(self, text: str) -> None:
        """Write it."""
        self._terminal.write(self._line("note", {"text": text}))

    def _end(self, event: str, document: dict[str, Any]) -> bytes:
        # The other facts of each gate are in its own line.
        fields = ("name", "status", "verdict", "action")
        results = [{field: gate[field] for field in fields} for gate in document.get("results", [])]
        return self._line(event, document | ({"results": results} if "results" in document else {}))

    def _line(self, event: str, fields: dict[str, Any]) -> bytes:
        self._number += 1
        line = {"version": VERSION, "seq": self._number, "event": event, **fields}
        return json.dumps(line).encode() + b"\n"


def junit_xml(decision: Decision, hook: str) -> bytes:
    """Return a run of a hook's gates as JUnit XML."""
    from xml.etree import ElementTree as ET  # only JUnit needs it

    end = f"ended at {decision.decided_by}" if decision.decided_by else "was interrupted"
    cases = [(visit.result.gate, visit.result, *_junit_end(visit)) for visit in decision.visits]
    cases += [
        (name, GateResult(gate=name, status="not-run"), "skipped", {"message": f"the run {end}"})
        for name in decision.not_run
    ]
    tags = [tag for _name, _result, tag, _attributes in cases]
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", name=f"gitgates {hook}", tests=str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(tags.count(tag)))
    suite.set("time", f"{sum(visit.result.duration_s for visit in decision.visits):.3f}")
    for name, result, tag, attributes in cases:
        case = ET.SubElement(suite, "testcase", name=_xml(name), classname=f"gitgates.{hook}")
        case.set("time", f"{result.duration_s:.3f}")
        if tag:
            element = ET.SubElement(case, tag, attributes)
            element.text = _xml("\n".join(map(_failure_line, result.findings.failures))) or None
        text = os.fsdecode(sanitise(result.output, colour=False))
        if text := text or (f"reused: {result.origin.reused}" if result.origin.reused else ""):
            ET.SubElement(case, "system-out").text = _xml(text)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _junit_end(visit: Visit) -> tuple[str, dict[str, str]]:
    """Return the element of a gate's result, and its attributes; none if it passed."""
    result = visit.result
    attributes = {"message": _xml(describe(result)), "type": result.status}
    if result.status == "skipped" or result.reason == CANCELLED or result.findings.excused:
        return "skipped", {"message": _xml(result.reason or result.findings.excused)}
    if result.status == "unchecked":
        return "skipped", {"message": _xml(f"nothing was checked: {result.reason}")}
    if result.status == "flaky" and visit.verdict < BLOCK:
        return "", {}
    if result.status in _ERRORS:
        return "error", attributes
    return (
        ("failure", attributes) if result.status != "passed" or visit.verdict >= BLOCK else ("", {})
    )


def _failure_line(failure: Failure) -> str:
    """Return a failure as compilers print one: `a.py:3:1: error: message [rule]`."""
    numbers = [str(number) for number in (failure.line, failure.column) if number]
    place = ":".join([failure.path, *numbers]) + ": " if failure.path else ""
    rule = f" [{failure.rule}]" if failure.rule else ""
    return f"{place}{failure.severity}: {failure.message}{rule}"


def _xml(text: str) -> str:
    """Return text without what XML 1.0 does not allow: controls, surrogates, noncharacters."""
    return utf8(visible(text)).replace("\ufffe", "").replace("\uffff", "")


def plan_text(plan: Plan, reuse: Mapping[str, str], *, colour: bool = False) -> str:
    """Return a plan for display: listed gates in order, chained ones below those that call them.

    `reuse`: gate → what is reused of it, or why nothing is.
    """
    steps = {step.gate.name: step for step in plan.steps}
    lines = [("", "", line) for line in (_heading(plan), *map("note: {}".format, plan_notes(plan)))]
    described: set[str] = set()
    for number, name in enumerate(plan.listed, 1):
        lines += [
            ("", "", ""),
            *_gate_lines(steps, reuse, name, f"{number}. ", described=described),
        ]
    bold = "\x1b[1m{}\x1b[0m" if colour else "{}"
    return "".join(
        f"{before}{bold.format(visible_line(name)) if name else ''}{visible_line(rest)}\n"
        for before, name, rest in lines
    )


def plan_document(plan: Plan, reuse: Mapping[str, str]) -> dict[str, Any]:
    """Return a plan as plain data; gates that only a chain reaches have `listed` false."""
    callers: dict[str, list[str]] = {}
    for step in plan.steps:
        for name in {step.gate.actions.on_pass, step.gate.actions.on_fail}:
            callers.setdefault(name, []).append(step.gate.name)
    return {
        "version": PLAN_VERSION,
        "hook": plan.event.name,
        "configured_as": plan.hook.name,
        "strategy": plan.hook.strategy,
        "paths": [utf8(path) for path in plan.event.paths or ()],
        "gates": [
            {**_step_fields(step, plan, callers), "reuse": reuse.get(step.gate.name)}
            for step in plan.steps
        ],
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
        notes.insert(0, f"{name} has no gates of its own, so those of {plan.hook.name} run")
    point = HOOK_POINTS[name]
    about = [step.gate.name for step in plan.steps if takes_paths(step.gate)]
    if point.host == "git" and point.scope == "none" and about:
        gates = ", ".join(f"`{gate}`" for gate in about)
        notes.append(f"git passes no paths to {name}: when fired by git, {gates} would be skipped")
    return tuple(notes)


def _heading(plan: Plan) -> str:
    paths, deleted = plan.event.paths or (), plan.event.deleted
    on = f"on {counted(len(paths), 'path')}: {_first(paths)}" if paths else why_no_path(plan.event)
    if deleted and not paths:
        on = f"on {counted(len(deleted), 'deleted path')}: {_first(deleted)}"
    fast = ", fail_fast" if plan.hook.fail_fast else ""
    return (
        f"{plan.event.name}: {counted(len(plan.listed), 'gate')}, {plan.hook.strategy}{fast}; {on}"
    )


def _gate_lines(
    steps: dict[str, Step],
    reuse: Mapping[str, str],
    listed_name: str,
    mark: str,
    *,
    described: set[str],
) -> list[tuple[str, str, str]]:
    """Return the lines of a listed gate and of its chains: indentation, name, rest.

    A loop, not a recursion: a chain may be longer than the interpreter's stack.
    """
    lines: list[tuple[str, str, str]] = []
    waiting = [("", mark, listed_name)]  # indent, what precedes it, the gate or action
    while waiting:
        indent, mark, name = waiting.pop()
        if name in ACTIONS:
            lines.append((f"{indent}{mark}", "", name))
            continue
        step, is_repeated = steps[name], name in described
        arrow = "→ " if indent else ""
        above = " (as above)" if is_repeated else ""
        lines.append((f"{indent}{mark}{arrow}", name, f": {why(step)}{above}"))
        described.add(name)
        if is_repeated or step.fault or name in policy_gates():
            continue  # the last two have no command, no limits and no actions
        inner = f"{indent}   " if len(indent) < _DEEPEST else indent
        lines += [(inner, "", line) for line in _facts(step.gate, reuse.get(name, ""))]
        waiting.append((inner, f"{'on fail':<9} ", step.gate.actions.on_fail))
        waiting.append((inner, f"{'on pass':<9} ", step.gate.actions.on_pass))
    return lines


def why(step: Step) -> str:
    """Return whether a gate runs, why, and on which paths."""
    if step.fault:
        return f"stops the run when reached: {step.fault}"
    if step.skip:
        return f"skipped: {step.skip}"
    if not takes_paths(step.gate):
        return "always runs"
    if not step.paths:
        return "runs: deleted paths match"
    return f"runs on {counted(len(step.paths), 'path')}: {_first(step.paths)}"


def _facts(gate: Gate, reuse: str) -> list[str]:
    facts = [("command", command_text(gate)), ("timeout", _time(gate.schedule.timeout_s))]
    if gate.description:
        facts.insert(0, ("checks", gate.description.strip().partition("\n")[0]))
    if gate.program.working_dir != ".":
        facts.append(("in", gate.program.working_dir))
    if gate.schedule.priority != "normal":
        facts.append(("priority", gate.schedule.priority))
    if also := _traits(gate):
        facts.append(("also", also))
    if reuse:
        facts.append(("reuse", reuse))
    return [f"{label:<9} {value}" for label, value in facts]


def _traits(gate: Gate) -> str:
    """Return the special settings of a gate."""
    traits = {
        "gets the paths": gate.program.pass_files,
        "gets the hook's arguments and standard input": gate.program.pass_hook_input,
        "may change files, so it runs alone": gate.program.writes,
        f"runs after {', '.join(gate.schedule.after)}": bool(gate.schedule.after),
        f"takes {gate.schedule.weight} slots": gate.schedule.weight > 1,
        f"has {', '.join(gate.schedule.resources)} for itself": bool(gate.schedule.resources),
        "is split over the free slots": gate.schedule.parallel,
        f"runs up to {gate.schedule.runs} times if it fails": gate.schedule.runs > 1,
        f"only warns until {gate.actions.quarantine_until}": bool(gate.actions.quarantine_until),
        "is required": gate.actions.required,
        f"sets {', '.join(name for name, _value in gate.program.env)}": bool(gate.program.env),
        f"git_env = {gate.program.git_env}": gate.program.git_env != "auto",
    }
    return "; ".join(trait for trait, holds in traits.items() if holds)


def command_text(gate: Gate) -> str:
    """Return what a gate runs on one line, shortened."""
    if gate.program.pre_commit is not None:
        ids = " ".join(gate.program.pre_commit) or "all hooks"
        return f"{gate.program.runner} run: {ids}"
    text = (
        gate.program.command
        if isinstance(gate.program.command, str)
        else shlex.join(gate.program.command or ())
    )
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
        "runner": gate.program.runner if gate.program.pre_commit is not None else None,
        **{field: value for field, value in gate.table().items() if field in _SAME_FIELDS},
    }


def _first(paths: tuple[str, ...]) -> str:
    return first_few([*map(_quoted, paths[:_FIRST_PATHS])], _FIRST_PATHS, len(paths[_FIRST_PATHS:]))


def _quoted(text: str) -> str:
    """Return text, quoted if it would break the line or the terminal."""
    is_fine = visible_line(text) == text
    return text if is_fine else json.dumps(utf8(text), ensure_ascii=False)


def _time(seconds: float) -> str:
    if seconds < _MINUTE_S or seconds % _MINUTE_S:
        return f"{seconds:g} s"
    return f"{seconds / _MINUTE_S:g} min"
