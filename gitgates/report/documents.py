"""A run as plain data: JSON, JSON lines as it happens, JUnit XML. Cold: no hook of git loads this.

Field names are part of the interface: `version` goes up when one changes its meaning or goes away.
"""

from __future__ import annotations

import json
import os
from typing import Any

from gitgates.clean import sanitise, utf8, visible
from gitgates.engine.run import InterruptedRun, Listener
from gitgates.engine.walk import describe
from gitgates.errors import GitgatesError
from gitgates.report.text import Terminal
from gitgates.types import BLOCK, VERDICTS, Decision, GateResult, Plan, Visit

VERSION = 1
_ERRORS = ("timed-out", "killed", "not-started")  # of JUnit; others are failures


def run_document(decision: Decision, plan: Plan) -> dict[str, Any]:
    """Return a whole run: the decision, and every gate in order."""
    return {
        "version": VERSION,
        "hook": plan.event.name,
        "root": utf8(plan.event.root_abs),
        "exit_status": 1 if decision.verdict >= BLOCK else 0,
        "verdict": VERDICTS[decision.verdict],
        "asked": decision.asked,
        "reason": decision.reason,
        "gates": [_visit(visit, plan) for visit in decision.visits],
        "not_run": list(decision.not_run),
        "notes": list(decision.notes),
    }


def error_document(error: GitgatesError) -> dict[str, Any]:
    """Return a run without a decision; if a signal ended it, with the results until then."""
    said = {"message": utf8(error.message), "hint": utf8(error.hint)}
    run: dict[str, Any] = {"version": VERSION}
    if isinstance(error, InterruptedRun):
        run = run_document(error.decision, error.plan)
    return {**run, "exit_status": error.exit_status, "verdict": None, "error": said}


def result_fields(result: GateResult) -> dict[str, Any]:
    """Return the result of one gate. Bytes that are no UTF-8 are replaced."""
    return {
        "name": result.gate,
        "status": result.status,
        "exit_status": result.exit_status,
        "signal": result.signal,
        "duration_s": round(result.duration_s, 3),
        "reason": utf8(result.reason),
        "output": result.output.decode("utf-8", "replace"),
        "dropped_bytes": result.dropped_bytes,
        "changed_paths": [utf8(path) for path in result.changed_paths],
        "restaged_paths": [utf8(path) for path in result.restaged_paths],
        "log": utf8(result.log_abs),
    }


def _visit(visit: Visit, plan: Plan) -> dict[str, Any]:
    paths = next(step.paths for step in plan.steps if step.gate.name == visit.result.gate)
    return {
        **result_fields(visit.result),
        "verdict": VERDICTS[visit.verdict],
        "action": visit.action,
        "called_by": visit.called_by,
        "rescued_by": visit.rescued_by,
        "paths": [utf8(path) for path in paths],
    }


class JsonDocument(Listener):
    """The listener that writes one document at the end."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return the whole run."""
        return _json(run_document(decision, plan))

    def failed(self, error: GitgatesError) -> bytes:
        """Return why nothing was decided."""
        return _json(error_document(error))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


class JsonLines(JsonDocument):
    """The listener that writes a line for each event, numbered from 1."""

    _number = 0

    def planned(self, plan: Plan) -> None:
        """Write the plan."""
        listed = {"hook": plan.event.name, "gates": list(plan.listed)}
        self._terminal.write(self._line("run-started", listed))

    def started(self, gate: str) -> None:
        """Write that a gate starts."""
        self._terminal.write(self._line("gate-started", {"name": gate}))

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - as other listeners
        """Write the result of a gate."""
        self._terminal.write(self._line("gate-ended", result_fields(result)))

    def said(self, text: str) -> None:
        """Write it."""
        self._terminal.write(self._line("note", {"text": text}))

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return the line of the decision."""
        return self._last("run-ended", run_document(decision, plan))

    def failed(self, error: GitgatesError) -> bytes:
        """Return the line of the error."""
        return self._last("run-failed", error_document(error))

    def _last(self, event: str, document: dict[str, Any]) -> bytes:
        # What else there is to say of each gate, its own line has said.
        fields = ("name", "status", "verdict", "action")
        gates = [{field: gate[field] for field in fields} for gate in document.get("gates", [])]
        return self._line(event, {**document, "gates": gates} if "gates" in document else document)

    def _line(self, event: str, fields: dict[str, Any]) -> bytes:
        self._number += 1
        line = {"version": VERSION, "seq": self._number, "event": event, **fields}
        return json.dumps(line).encode() + b"\n"


def junit_xml(decision: Decision, plan: Plan) -> bytes:
    """Return a run as JUnit XML."""
    from xml.etree import ElementTree as ET  # nobody else needs it

    end = f"ended at {decision.asked}" if decision.asked else "was interrupted"
    cases = [(one.result.gate, one.result, *_junit_end(one)) for one in decision.visits]
    cases += [
        (name, GateResult(gate=name, status="not-run"), "skipped", {"message": f"the run {end}"})
        for name in decision.not_run
    ]
    tags = [tag for _name, _result, tag, _attributes in cases]
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root, "testsuite", name=f"gitgates {plan.event.name}", tests=str(len(cases))
    )
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(tags.count(tag)))
    suite.set("time", f"{sum(visit.result.duration_s for visit in decision.visits):.3f}")
    for name, result, tag, attributes in cases:
        case = ET.SubElement(
            suite, "testcase", name=_xml(name), classname=f"gitgates.{plan.event.name}"
        )
        case.set("time", f"{result.duration_s:.3f}")
        if tag:
            ET.SubElement(case, tag, attributes)
        if result.output:
            text = os.fsdecode(sanitise(result.output, colour=False))
            ET.SubElement(case, "system-out").text = _xml(text)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _junit_end(visit: Visit) -> tuple[str, dict[str, str]]:
    """Return the element of a gate's result, and its attributes; none if it passed."""
    result = visit.result
    said = {"message": _xml(describe(result)), "type": result.status}
    if result.status == "skipped":
        return "skipped", {"message": _xml(result.reason)}
    if result.status in _ERRORS:
        return "error", said
    return ("failure", said) if result.status != "passed" or visit.verdict >= BLOCK else ("", {})


def _xml(text: str) -> str:
    """Return text without what XML 1.0 cannot hold: controls, surrogates, noncharacters."""
    return utf8(visible(text)).replace("\ufffe", "").replace("\uffff", "")
