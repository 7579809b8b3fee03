"""A run as JUnit XML, for the machines that show such files. Cold.

A gate that failed is a `failure`; one that timed out, was killed or could not start is an `error`.
"""

from __future__ import annotations

import os
from xml.etree import ElementTree as ET

from gitgates.clean import tame, utf8, visible
from gitgates.engine.walk import describe
from gitgates.types import BLOCK, Decision, Plan, Visit

_ERRORS = ("timed-out", "killed", "not-started")


def junit_xml(decision: Decision, plan: Plan) -> bytes:
    """Return the file's bytes."""
    cases = [_case(visit, plan) for visit in decision.visits]
    cases += [_not_run(name, decision, plan) for name in decision.not_run]
    suite = ET.Element("testsuite", name=f"gitgates {plan.event.name}", tests=str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{sum(visit.result.duration_s for visit in decision.visits):.3f}")
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(visit: Visit, plan: Plan) -> ET.Element:
    result = visit.result
    case = _element(result.gate, plan, result.duration_s)
    said = _valid(describe(result))
    if result.status == "skipped":
        ET.SubElement(case, "skipped", message=_valid(result.reason))
    elif result.status in _ERRORS:
        ET.SubElement(case, "error", message=said, type=result.status)
    elif result.status != "passed" or visit.verdict >= BLOCK:
        ET.SubElement(case, "failure", message=said, type=result.status)
    if result.output:
        ET.SubElement(case, "system-out").text = _valid(
            os.fsdecode(tame(result.output, colour=False))
        )
    return case


def _not_run(name: str, decision: Decision, plan: Plan) -> ET.Element:
    case = _element(name, plan, 0.0)
    end = f"ended at {decision.asked}" if decision.asked else "was interrupted"
    ET.SubElement(case, "skipped", message=f"the run {end}")
    return case


def _element(name: str, plan: Plan, seconds: float) -> ET.Element:
    hook = f"gitgates.{plan.event.name}"
    return ET.Element("testcase", name=_valid(name), classname=hook, time=f"{seconds:.3f}")


def _valid(text: str) -> str:
    """Return text without what XML 1.0 cannot hold: controls, surrogates, noncharacters."""
    return utf8(visible(text)).replace("\ufffe", "").replace("\uffff", "")
