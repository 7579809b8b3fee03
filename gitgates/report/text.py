"""A run as text: one line a gate, the output of those that did not pass, and what it all means.

Git hooks print this, on terminals with a live line of what is running, so it is written for the hot
path.
"""

from __future__ import annotations

import os
import time

from gitgates.engine.walk import count_files, describe
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.types import Decision, GateResult, Plan, Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COLOURS = {
    "passed": "32",
    "failed": "31",
    "timed-out": "31",
    "killed": "31",
    "not-started": "31",
    "skipped": "2",
    "not-run": "2",
}
_STATUS_WIDTH = 11
_MINUTE_S = 60
_PATIENCE_S = 0.3  # what runs longer is told in the live line
_LIVE_WIDTH = 78
_CLEAR = b"\r\x1b[K"


class Terminal(Record):
    """One output of ours."""

    fd: int
    colour: bool = False
    live: bool = False  # a line may be drawn and drawn over again
    tell: Callable[[str], object] | None = None  # is told why a write was not possible

    def write(self, data: bytes) -> str:
        """Write all of `data`; return why that was not possible, or nothing.

        A reader that is gone is no reason to fail: it has what it wanted.
        """
        try:
            while data:
                data = data[os.write(self.fd, data) :]
        except BrokenPipeError:
            return ""
        except OSError as error:
            why = error.strerror or str(error)
            if self.tell:
                self.tell(why)
            return why
        return ""


def open_terminal(fd: int, env: Mapping[str, str]) -> Terminal:
    """Return what is known of one of our outputs. Source: no-color.org, force-color.org."""
    smart = os.isatty(fd) and env.get("TERM", "") != "dumb"
    colour = not env.get("NO_COLOR") and (smart or bool(env.get("FORCE_COLOR")))
    return Terminal(fd=fd, colour=colour, live=smart)


class Style(Record):
    """How the text looks."""

    colour: bool = False
    quiet: bool = False  # only what did not pass
    verbose: bool = False  # the output of gates that passed, too


class Console:
    """The listener that prints each gate as it ends, and on a terminal a line of what runs."""

    def __init__(self, terminal: Terminal, style: Style) -> None:
        self._terminal = terminal
        self._style = style
        self.live = terminal.live and not style.quiet
        self._running: dict[str, float] = {}  # gate → when it started
        self._drawn = ""  # the live line, while it is there
        self._skipped: set[str] = set()  # lines of skipped gates that are printed already

    def planned(self, plan: Plan) -> None:
        """Do nothing: each gate is told when it ends."""

    def started(self, gate: str) -> None:
        """Note since when a gate runs."""
        self._running[gate] = time.monotonic()

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Print how a gate ended, below the skipped gates that are listed before it."""
        self._running.pop(result.gate, None)
        self._clear()
        for line in _skipped_before(result.gate, plan, self._style):
            if line not in self._skipped:
                self._skipped.add(line)
                self._terminal.write(as_bytes(f"{line}\n"))
        self._terminal.write(_result(result, plan, self._style))

    def tick(self) -> None:
        """Draw the live line anew where it says something else by now."""
        now = time.monotonic()
        if not self.live or not any(now - at > _PATIENCE_S for at in self._running.values()):
            return
        gates = ", ".join(f"{gate} {now - at:.0f} s" for gate, at in self._running.items())
        line = f"running: {gates}"[:_LIVE_WIDTH]
        if line != self._drawn:
            self._drawn = line
            self._terminal.write(_CLEAR + line.encode("utf-8", "replace"))

    def said(self, text: str) -> None:
        """Print it."""
        self._clear()
        self._terminal.write(as_bytes(f"gitgates: {shown(text)}\n"))

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return what is left to print: gates that did not run, the notes, and the summary."""
        style, lines = self._style, list[str]()
        for visit in decision.visits:
            result = visit.result
            if result.status == "skipped" and not style.quiet:
                line = _skipped(result.gate, result.reason, plan, style)
                lines += [line] if line not in self._skipped else []
            elif (
                visit.action == "STOP" and result.status == "not-started" and not result.duration_s
            ):
                line = _line(result.gate, "not-started", plan, style)
                lines.append(f"{line}  {shown(result.reason)}")
        if not style.quiet:
            why = f"the run ended at `{decision.asked}`"
            lines += [f"{_line(name, 'not-run', plan, style)}  {why}" for name in decision.not_run]
        lines += [f"gitgates: {shown(note)}" for note in decision.notes]
        if summary := _summary(decision, plan, style):
            lines.append(summary)
        return as_bytes("".join(f"{line}\n" for line in lines))

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = ""
            self._terminal.write(_CLEAR)


def _result(result: GateResult, plan: Plan, style: Style) -> bytes:
    """Return the line of a gate that has ended, and its output where that matters."""
    gate = next(step.gate for step in plan.steps if step.gate.name == result.gate)
    left_out = set(result.changed_paths) - set(result.restaged_paths)
    fine = result.status == "passed" and not left_out
    if fine and style.quiet:
        return b""
    line = _line(result.gate, result.status, plan, style) + f"  {_time(result.duration_s):>8}"
    if said := shown(_detail(result)):
        line += f"  {said}"
    output = b""
    if not fine or style.verbose or gate.on_pass in ("BLOCK", "STOP"):
        output = _output(result, style)
    return as_bytes(line.rstrip() + "\n") + output


def _skipped_before(gate: str, plan: Plan, style: Style) -> list[str]:
    """Return the lines of the skipped gates that are listed before a gate."""
    if style.quiet or gate not in plan.listed:
        return []
    before = plan.listed[: plan.listed.index(gate)]
    skips = {step.gate.name: step.skip for step in plan.steps if step.skip}
    return [_skipped(name, skips[name], plan, style) for name in before if name in skips]


def _summary(decision: Decision, plan: Plan, style: Style) -> str:
    head = f"gitgates {plan.event.name}"
    reason = shown(decision.reason)
    match decision.verdict:
        case 0:
            return "" if style.quiet else f"{head}: {_tally(decision.visits)}"
        case 1:
            return _paint(f"{head}: passed with a warning: {reason}", "33", style)
        case 2 | 3 if not HOOK_POINTS[plan.event.name].can_block:
            return _paint(f"{head}: too late to block: {reason}", "31", style)
        case 2:
            return _paint(f"{head}: blocked: {reason}", "31", style)
        case 3:
            return _paint(f"{head}: stopped: {reason}", "31", style)


def _tally(visits: tuple[Visit, ...]) -> str:
    ran = {visit.result.gate for visit in visits if visit.result.status == "passed"}
    skipped = {visit.result.gate for visit in visits if visit.result.status == "skipped"}
    observed = {visit.result.gate for visit in visits if visit.would} - ran
    parts = [_gates(len(ran), "passed")] if ran else []
    parts += [_gates(len(observed), "only observed")] if observed else []
    parts += [_gates(len(skipped), "skipped")] if skipped else []
    return ", ".join(parts) or "no gates"


def _gates(count: int, how: str) -> str:
    return f"{count} gate{'' if count == 1 else 's'} {how}"


def _detail(result: GateResult) -> str:
    match result.status:
        case "failed" if result.exit_status and result.changed_paths:
            return (
                f"exit status {result.exit_status}; it changed {count_files(result.changed_paths)}"
            )
        case "failed":
            return f"exit status {result.exit_status}" if result.exit_status else result.reason
        case "killed" if result.signal:
            return result.reason or f"signal {result.signal}"
        case _ if result.changed_paths:
            return describe(result)
        case _:
            return result.reason


def _output(result: GateResult, style: Style) -> bytes:
    if not result.output:
        return b""
    from gitgates.clean import sanitise  # most runs show no output

    lines = sanitise(result.output.rstrip(b"\r\n"), colour=style.colour).split(b"\n")
    output = b"".join(b"  | " + line + b"\n" for line in lines)
    if result.dropped_bytes and result.log_abs:
        output += as_bytes(f"  all of it: {shown(result.log_abs)}\n")
    return output


def shown(text: str) -> str:
    """Return text as one line, with what could command a terminal: a path's name may hold that."""
    if text.isascii() and text.isprintable():
        return text
    from gitgates.clean import visible  # seldom needed

    return visible(text).replace("\n", "\\n")


def _skipped(name: str, reason: str, plan: Plan, style: Style) -> str:
    return f"{_line(name, 'skipped', plan, style)}  {shown(reason)}"


def _line(name: str, status: str, plan: Plan, style: Style) -> str:
    width = max(len(step.gate.name) for step in plan.steps)
    word = _paint(f"{status.replace('-', ' '):<{_STATUS_WIDTH}}", _COLOURS[status], style)
    return f"{shown(name):<{width}}  {word}"


def _time(seconds: float) -> str:
    if seconds >= _MINUTE_S:
        return f"{int(seconds) // _MINUTE_S} m {int(seconds) % _MINUTE_S:02} s"
    return f"{seconds:.2f} s"


def _paint(text: str, code: str, style: Style) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if style.colour else text


def as_bytes(text: str) -> bytes:
    """Return text as it is written: the bytes of a path that is no UTF-8 as they are."""
    return text.encode("utf-8", "surrogateescape")
