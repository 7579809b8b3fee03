"""Run advice hooks as gates, at an agent's event; record and report the results."""

from __future__ import annotations

import os

from gitgates.core.environ import skipped_gates
from gitgates.core.types import ALLOW, BLOCK, WARN, Event, Hook, Verdict
from gitgates.drivers.gate_run import GateRun, deciding
from gitgates.engine.plan.plan import make_plan, record_skips
from gitgates.features.advice.facts import HOOK_RUNS
from gitgates.features.advice.items import content_hash, records, with_hooks
from gitgates.hosts.capabilities import express
from gitgates.journal.entries import WarningEntry
from gitgates.report.feedback import feedback, warning_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gitgates.core.types import Decision
    from gitgates.drivers.call import Call
    from gitgates.features.advice.items import Advice

_MOST_LINES, _LONGEST_LINE = 3, 200  # for output shown to a person at once
_LATER = 2000  # characters of the feedback that the agent gets with its next prompt
_OUTCOMES = {ALLOW: "passed", WARN: "passed", BLOCK: "blocked"}


def decide_event(call: Call, hooks: Sequence[Advice]) -> Verdict:
    """Run the hooks that are due; return the verdict."""
    payload, is_end = call.payload, call.kind in ("turn-end", "session-end")
    if call.kind == "turn-end" and not call.ends_work:
        return Verdict()
    if is_end:
        hooks = [hook for hook in hooks if _is_due(call, hook)]
    config = with_hooks(call.config, Hook(name=payload.event), hooks, _folder(call))
    event = Event(payload.host, payload.event, call.repo.root_abs, payload=payload)
    skips = skipped_gates(call.env)
    plan = make_plan(config, config.hooks[-1], event, skips)
    call.explanations["advice"] = plan
    if call.is_dry or not hooks:
        return Verdict()
    record_skips(plan, call.repo, skips)
    run = GateRun(call, plan, config)
    tree = call.snapshot.tree if is_end else ""
    decision = run.run()
    verdict = _verdict(run, decision)
    if decision.verdict:
        run.save(decision, verdict.to_agent)
    entries: list[Any] = records(decision, hooks, tree)
    if call.kind != "turn-end":  # there, the breaker counts the gates' rounds
        entries.append(run.entry(_OUTCOMES[verdict.level], deciding(decision)))
    return verdict._replace(entries=(*entries, *verdict.entries))


def _is_due(call: Call, advice: Advice) -> bool:
    """Return whether a hook must run at an end: not twice on the same content, unless it blocks.

    A blocking hook must pass; the breaker limits its runs.
    """
    status, tree = call.state(HOOK_RUNS).ran.get(f"{advice.id}:{content_hash(advice)}", ("", ""))
    may_be_skipped = status == "passed" or advice.hook_on_failure != "block"
    return not (status and may_be_skipped and tree == call.snapshot.tree)


def _folder(call: Call) -> str:
    """Return the agent's folder relative to the root; the root if it is outside."""
    folder = os.path.relpath(
        os.path.realpath(call.payload.cwd_abs or call.repo.root_abs),
        os.path.realpath(call.repo.root_abs),
    )
    is_inside = folder != ".." and not folder.startswith("../")
    return folder if is_inside and not call.is_elsewhere else "."


def _verdict(run: GateRun, decision: Decision) -> Verdict:
    call, payload = run.call, run.call.payload
    level = express(payload, decision.verdict)[0]
    if call.kind == "before-compact":
        level = min(level, WARN)
    if not level:
        return Verdict()
    report = run.report(decision)._replace(leads_to=level)
    if level == BLOCK:
        return Verdict(BLOCK, to_agent=feedback(report))
    to_person = warning_text(report) + _first_lines(decision)
    if payload.can.context:
        return Verdict(WARN, to_agent=feedback(report), to_person=to_person)
    later = WarningEntry("advice", feedback(report, _LATER))
    return Verdict(WARN, to_person=to_person, entries=(later,))


def _first_lines(decision: Decision) -> str:
    """Return the first output lines of hooks that did not pass, for a person."""
    from gitgates.core.clean import plain_line  # only if one has failed

    outputs = (
        visit.result.output.decode("utf-8", "replace") for visit in decision.visits if visit.verdict
    )
    lines = [line for text in outputs for line in text.splitlines() if line.strip()]
    return "".join(f"\n  | {plain_line(line, _LONGEST_LINE)}" for line in lines[:_MOST_LINES])


def is_about_to(verb: str, command: str) -> bool:
    """Return whether a shell command runs `git commit` or `git push`, or cannot be parsed."""
    from gitgates.shell.repositories import GIT_WITH_VALUE
    from gitgates.shell.syntax import read_command_line

    line = read_command_line(command)
    for words in (command.words for command in line.commands):
        if words and os.path.basename(words[0]) == "git":
            rest = list(words[1:])
            while rest and rest[0].startswith("-"):
                del rest[: 2 if rest[0] in GIT_WITH_VALUE else 1]
            if rest[:1] == [verb]:
                return True
    return bool(line.trouble)
