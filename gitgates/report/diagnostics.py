"""The failures of a run in the formats of CI systems: SARIF, Code Quality, workflow commands.

Pure except for logs of the run. Cold. The formats:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html,
https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format,
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from gitgates import __version__
from gitgates.core.clean import plain_line, utf8
from gitgates.core.failure import Failure
from gitgates.core.types import BLOCK, Config, Decision, Gate, GateResult, Plan, Visit
from gitgates.engine.findings.failures import failures_of
from gitgates.engine.plan.walk import describe

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_FAILED = ("failed", "timed-out", "killed")
_FINE = ("passed", "flaky")
_LOOKED = ("passed", *_FAILED, "not-started")  # of the others, nothing can be said
_MOST_COMMANDS = 10  # of a severity: GitHub shows no more of a step
_CODE_QUALITY = {"error": "major", "warning": "minor", "note": "info"}
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


class Diagnostics:
    """The failures of a run's gates, each with a place that can be shown."""

    def __init__(self, decision: Decision, plan: Plan, config: Config) -> None:
        self._gates = {step.gate.name: step.gate for step in plan.steps}
        # Failures without a file are shown in the settings file.
        self._settings = config.sources[0] if config.sources else "gitgates.toml"
        self._root_abs = plan.event.root_abs
        last = {visit.result.gate: visit for visit in decision.visits}
        self._visits = [visit for visit in last.values() if visit.result.status in _LOOKED]

    def sarif(self) -> bytes:
        """Return a SARIF log with a run of each gate that has looked, also if it passed."""
        runs = [self._run(visit) for visit in self._visits]
        return _json({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs})

    def code_quality(self) -> bytes:
        """Return the failures that count as a report of GitLab's Code Quality."""
        return _json(
            [
                {
                    "description": failure.message,
                    "check_name": f"{gate}: {failure.rule}" if failure.rule else gate,
                    "fingerprint": failure.fingerprint,
                    "severity": _CODE_QUALITY[failure.severity],
                    "location": {"path": failure.path, "lines": {"begin": failure.line}},
                }
                for gate, failure in self._counted()
            ]
        )

    def workflow_commands(self) -> str:
        """Return the failures that count as commands that make annotations in GitHub Actions."""
        commands: dict[str, list[str]] = {severity: [] for severity in _COMMANDS}
        for gate, failure in self._counted():
            title = f"{gate}: {failure.rule}" if failure.rule else gate
            fields: dict[str, str | int] = {"file": failure.path, "line": failure.line}
            fields |= {"col": failure.column, "title": title}
            given = ",".join(f"{name}={_property(fields[name])}" for name in fields if fields[name])
            command = f"::{_COMMANDS[failure.severity]} {given}::{_data(failure.message)}\n"
            commands[failure.severity].append(command)
        shown = [line for lines in commands.values() for line in lines[:_MOST_COMMANDS]]
        hidden = sum(map(len, commands.values())) - len(shown)
        note = f"gitgates: {hidden} more failures have no annotation\n" if hidden else ""
        return "".join(shown) + note

    def _counted(self) -> list[tuple[str, Failure]]:
        """Return gate and failure, of those that are not accepted."""
        return [
            (utf8(plain_line(visit.result.gate)), failure)
            for visit in self._visits
            for failure in self._failures(visit)
            if not _is_accepted(failure, visit.result)
        ]

    def _failures(self, visit: Visit) -> list[Failure]:
        result = visit.result
        if visit.rescued_by or (result.status in _FINE and visit.verdict < BLOCK):
            return []  # it has been put right, or never was wrong
        gate = self._gates.get(result.gate, Gate(name=result.gate))
        if result.status not in _FAILED:  # its output is about something else
            gate = gate.changed(failures="")
        found = failures_of(gate, result, self._root_abs, lambda _text: None)
        return [self._placed(failure, visit) for failure in found]

    def _placed(self, failure: Failure, visit: Visit) -> Failure:
        """Return a failure with a place and a message, and only as severe as it counts."""
        if not failure.path:
            what = f"{describe(visit.result)}: {failure.message}".removesuffix(": ")
            message = f"{visit.result.gate} {what}"
            failure = failure._replace(path=self._settings, line=0, column=0, message=message)
        if visit.verdict < BLOCK and failure.severity == "error":
            failure = failure._replace(severity="warning")
        message = utf8(plain_line(failure.message or failure.title, 0))
        return failure._replace(
            path=utf8(failure.path),
            line=failure.line or 1,
            rule=utf8(failure.rule),
            message=message,
        )

    def _run(self, visit: Visit) -> dict[str, Any]:
        """Return a SARIF run. Its id tells it from other runs, for comparisons."""
        result, failures = visit.result, self._failures(visit)
        gate = utf8(plain_line(result.gate))
        rules = list(dict.fromkeys(failure.rule or gate for failure in failures))
        driver = {"name": "gitgates", "version": __version__, "rules": [{"id": r} for r in rules]}
        invocation: dict[str, Any] = {"executionSuccessful": result.status in ("passed", "failed")}
        if result.exit_status is not None:
            invocation["exitCode"] = result.exit_status
        if not invocation["executionSuccessful"]:
            message = {"text": utf8(plain_line(f"{gate} {describe(result)}", 0))}
            invocation["toolExecutionNotifications"] = [{"level": "error", "message": message}]
        return {
            "tool": {"driver": driver},
            "automationDetails": {"id": f"gitgates/{gate}/"},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": [_result(failure, rules, result) for failure in failures],
        }


def _is_accepted(failure: Failure, result: GateResult) -> bool:
    return bool(result.findings.excused) or failure.fingerprint in result.findings.accepted


def _result(failure: Failure, rules: list[str], result: GateResult) -> dict[str, Any]:
    region = {"startLine": failure.line, "startColumn": failure.column}
    rule = failure.rule or utf8(plain_line(result.gate))
    accepted = {"kind": "external", "justification": utf8(result.findings.excused or result.reason)}
    suppressed = {"suppressions": [accepted]} if _is_accepted(failure, result) else {}
    place = {
        "artifactLocation": {"uri": quote(failure.path), "uriBaseId": "%SRCROOT%"},
        "region": {name: number for name, number in region.items() if number},
    }
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": failure.severity,
        "message": {"text": failure.message},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"gitgates/v1": failure.fingerprint},
        **suppressed,
    }


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str | int) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


def _json(document: object) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
