"""A run as plain data: JSON, JSON lines as it happens, JUnit XML. Cold: no hook of git loads this.

Field names are part of the interface: `version` goes up when one changes its meaning or goes away.
"""

from __future__ import annotations

import json
import os

from gitgates.clean import sanitise, utf8, visible
from gitgates.engine.walk import describe
from gitgates.types import BLOCK, VERDICTS, Decision, GateResult, Plan, Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.report.text import Terminal

VERSION = 1
_ERRORS = ("timed-out", "killed", "not-started")  # of JUnit; others are failures


def run_document(decision: Decision, plan: Plan) -> dict[str, Any]:
    """Return a whole run: what was decided, and every gate in the order in which it was met."""
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


def interrupted_document(error: dict[str, Any], decision: Decision, plan: Plan) -> dict[str, Any]:
    """Return a run that a signal ended: its `error_document`, and how gates ended until then."""
    return {**run_document(decision, plan), **error}


def error_document(message: str, hint: str, exit_status: int) -> dict[str, Any]:
    """Return a run that came to no decision."""
    error = {"message": utf8(message), "hint": utf8(hint)}
    return {"version": VERSION, "exit_status": exit_status, "verdict": None, "error": error}


def result_fields(result: GateResult) -> dict[str, Any]:
    """Return how one gate ended. Output that is not UTF-8 has its odd bytes replaced."""
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


class JsonLines:
    """The listener that writes a line for each thing that happens, numbered from 1."""

    live = False

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._number = 0

    def planned(self, plan: Plan) -> None:
        """Write what is going to run."""
        listed = {"hook": plan.event.name, "gates": list(plan.listed)}
        self.write("run-started", listed)

    def started(self, gate: str) -> None:
        """Write that a gate starts."""
        self.write("gate-started", {"name": gate})

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - as other listeners
        """Write how a gate ended."""
        self.write("gate-ended", result_fields(result))

    def tick(self) -> None:
        """Do nothing: time that passes is no event."""

    def said(self, text: str) -> None:
        """Write it."""
        self.write("note", {"text": text})

    def closing(self, decision: Decision, plan: Plan) -> None:
        """Write what was decided."""
        self._end("run-ended", run_document(decision, plan))

    def failed(self, document: dict[str, Any]) -> None:
        """Write why nothing was decided."""
        self._end("run-failed", document)

    def _end(self, event: str, document: dict[str, Any]) -> None:
        """Write the last line; what else there is to say of each gate, its own line has said."""
        if "gates" in document:
            document["gates"] = [
                {key: gate[key] for key in ("name", "status", "verdict", "action")}
                for gate in document["gates"]
            ]
        self.write(event, document)

    def write(self, event: str, fields: dict[str, Any]) -> None:
        """Write one line."""
        self._number += 1
        line = {"version": VERSION, "seq": self._number, "event": event, **fields}
        self._terminal.write(json.dumps(line).encode() + b"\n")


def junit_xml(decision: Decision, plan: Plan) -> bytes:
    """Return a run as JUnit XML, for the machines that show such files."""
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
    """Return the element that says how a gate ended, and its attributes; none if it passed."""
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
