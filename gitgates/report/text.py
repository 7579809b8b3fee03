"""A run as text: one line a gate, the output of those that did not pass, and the verdict.

Git hooks print this, on terminals with a live line of what is running, so it is written for the hot
path.
"""

from __future__ import annotations

import os
import time

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Decision, GateResult, Plan, Visit
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.walk import blocking_gates, count_files, describe, new_failures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.proc.resources import Wait

_COLOURS = {
    "passed": "32",
    "reused": "32",
    "failed": "31",
    "timed-out": "31",
    "killed": "31",
    "not-started": "31",
    "unchecked": "33",
    "flaky": "33",
    "accepted": "33",
    "skipped": "2",
    "not-run": "2",
}
_STATUS_WIDTH = 11
_MINUTE_S = 60
_PATIENCE_S = 0.3  # what runs longer is shown in the live line
_LIVE_WIDTH = 78
_MOST_SKIPPED = 5  # gates for one reason that are listed
_SILENT_S = 300.0  # CI systems end what prints nothing for ten minutes
_CLEAR = b"\r\x1b[K"


class Terminal(Record):
    """One output of ours."""

    fd: int
    colour: bool = False
    live: bool = False  # a line may be drawn and drawn over again
    tell: Callable[[str], object] | None = None  # called with the reason when a write fails

    def write(self, data: bytes) -> str:
        """Write all of `data`; return the error, if any.

        A reader that has gone is no failure: it has what it wanted.
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
    """Return one of the outputs, with its options. Source: no-color.org, force-color.org."""
    smart = os.isatty(fd) and env.get("TERM", "") != "dumb"
    colour = not env.get("NO_COLOR") and (smart or bool(env.get("FORCE_COLOR")))
    return Terminal(fd=fd, colour=colour, live=smart)


class Console(Listener):
    """The listener that prints each gate as it ends and, on a terminal, a line of running gates.

    That line also has the phase, with the time since it began; without such a line, a phase is
    printed when it begins, and again every few minutes.

    `quiet`: only what did not pass. `verbose`: the output of gates that passed, too.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool = False, verbose: bool = False) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._verbose = verbose
        self._draws = self.live = terminal.live and not quiet
        self._running: dict[str, float] = {}  # gate → when it started
        self._phase = ""
        self._phase_began = self._phase_said = 0.0
        self._drawn = ""  # the live line, while it is there
        self._skipped: set[str] = set()  # gates whose line is printed already

    def phase(self, text: str) -> None:
        """Show what is being done from now on."""
        self._clear()
        self._phase = escaped_line(text)
        self._phase_began = self._phase_said = time.monotonic()
        self.live = True  # even without a live line: a phase is repeated
        if self._phase and not self._draws:
            self.message(text)
        self.tick()

    def started(self, gate: str) -> None:
        """Record when a gate started."""
        self._running[gate] = time.monotonic()

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Print how a gate ended, below the skipped gates that are listed before it."""
        self._running.pop(result.gate, None)
        self._clear()
        if result.gate in plan.listed:
            before = plan.listed[: plan.listed.index(result.gate)]
            skips = {step.gate.name: step.skip for step in plan.steps if step.skip}
            lines = [self._skip(name, skips[name], plan) for name in before if name in skips]
            self._terminal.write(as_bytes("".join(lines)))
        self._terminal.write(self._result(result, plan))

    def waiting(self, gate: str, wait: Wait) -> None:
        """Print it, unless it is in the live line."""
        if not self._draws:
            super().waiting(gate, wait)

    def tick(self) -> None:
        """Redraw the live line if it has changed."""
        now = time.monotonic()
        if not self._draws:
            if self._phase and now - self._phase_said >= _SILENT_S:
                self._phase_said = now
                self.message(f"{self._phase}, {_elapsed(now - self._phase_began)}")
            return
        gates = ", ".join(f"{gate} {_elapsed(now - at)}" for gate, at in self._running.items())
        if not any(now - at > _PATIENCE_S for at in self._running.values()):
            gates = ""
        line = f"running: {gates}" if gates else ""
        waits = "; ".join(f"{gate}: {wait.text}" for gate, wait in self.waits.items())
        line += f"{', ' if line else ''}waiting: {escaped_line(waits)}" if waits else ""
        if self._phase:
            line = f"{self._phase}, {_elapsed(now - self._phase_began)}"
            line += f": {gates}" if gates else ""
        line = line[:_LIVE_WIDTH]
        if line and line != self._drawn:
            self._drawn = line
            self._terminal.write(_CLEAR + line.encode("utf-8", "replace"))

    def message(self, text: str) -> None:
        """Print it."""
        self._clear()
        self._terminal.write(as_bytes(f"gitgates: {escaped_line(text)}\n"))

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return what is left to print: gates that did not run, the notes, and the summary."""
        text = ""
        for visit in decision.visits:
            result = visit.result
            if result.status == "skipped":
                text += self._skip(result.gate, result.reason, plan)
            elif (
                visit.action == "STOP" and result.status == "not-started" and not result.duration_s
            ):
                line = self._line(result.gate, "not-started", plan)
                text += f"{line}  {escaped_line(result.reason)}\n"
        for name in () if self._quiet else decision.not_run:
            text += (
                f"{self._line(name, 'not-run', plan)}  the run ended at `{decision.decided_by}`\n"
            )
        text += "".join(f"gitgates: {escaped_line(note)}\n" for note in decision.notes)
        return as_bytes(text + self._summary(decision, plan))

    def _skip(self, name: str, reason: str, plan: Plan) -> str:
        """Return the line of a skipped gate, once; one for many that have the same reason."""
        if self._quiet or name in self._skipped:
            return ""
        self._skipped.add(name)
        alike = {step.gate.name for step in plan.steps if step.skip == reason}
        if len(alike) > _MOST_SKIPPED and not self._verbose:
            if not (alike & self._skipped <= {name}):
                return ""
            name = f"{len(alike)} gates"
        return f"{self._line(name, 'skipped', plan)}  {escaped_line(reason)}\n"

    def _result(self, result: GateResult, plan: Plan) -> bytes:
        """Return the line of a gate that has ended, and its output where that matters."""
        gate = next(step.gate for step in plan.steps if step.gate.name == result.gate)
        left_out = set(result.changed_paths) - set(result.restaged_paths)
        fine = result.status == "passed" and not left_out
        if fine and self._quiet:
            return b""
        status = "reused" if is_reused(result) else result.status
        word = "accepted" if result.findings.excused else status
        line = self._line(result.gate, word, plan) + f"  {_time(result.duration_s):>8}"
        where = f"on {result.origin.where}" if result.origin.where else ""
        if detail := escaped_line("; ".join(filter(None, (where, _detail(result))))):
            line += f"  {detail}"
        output = b""
        shows = not (fine or result.findings.excused) or self._verbose
        if shows or gate.actions.on_pass in ("BLOCK", "STOP"):
            news = () if self._verbose else new_failures(result)
            shown = _only(result, news) if news else result
            output = shown_output(shown, colour=self._terminal.colour)
        return as_bytes(line.rstrip() + "\n") + output

    def _summary(self, decision: Decision, plan: Plan) -> str:
        head = f"gitgates {plan.event.name}"
        if not decision.verdict:
            return "" if self._quiet else f"{head}: {_tally(decision.visits)}\n"
        how = ("", "passed with a warning", "blocked", "stopped")[decision.verdict]
        code = "33" if decision.verdict < BLOCK else "31"
        why = f": {decision.reason}"
        if decision.verdict >= BLOCK and not HOOK_POINTS[plan.event.name].can_block:
            how = "too late to block"
        elif names := blocking_gates(decision):
            why = f" by {', '.join(f'`{name}`' for name in names)}"
        return self._paint(f"{head}: {how}{escaped_line(why)}", code) + "\n"

    def _line(self, name: str, status: str, plan: Plan) -> str:
        width = max(len(step.gate.name) for step in plan.steps)
        word = self._paint(f"{status.replace('-', ' '):<{_STATUS_WIDTH}}", _COLOURS[status])
        return f"{escaped_line(name):<{width}}  {word}"

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._terminal.colour else text

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = ""
            self._terminal.write(_CLEAR)


def _tally(visits: tuple[Visit, ...]) -> str:
    ran = {visit.result.gate for visit in visits if visit.result.status == "passed"}
    skipped = {visit.result.gate for visit in visits if visit.result.status == "skipped"}
    observed = {visit.result.gate for visit in visits if visit.would} - ran
    accepted = {visit.result.gate for visit in visits if visit.result.findings.excused}
    unchecked = {v.result.gate for v in visits if v.result.status == "unchecked"}
    counts = (
        (ran, "passed"),
        (unchecked, "checked nothing"),
        (observed, "only observed"),
        (accepted, "with accepted failures only"),
        (skipped, "skipped"),
    )
    parts = [
        f"{len(gates)} gate{'' if len(gates) == 1 else 's'} {how}" for gates, how in counts if gates
    ]
    return ", ".join(parts) or "no gates"


def is_reused(result: GateResult) -> bool:
    """Return whether a gate did not run at all, because it had passed on the same content."""
    return result.status == "passed" and bool(result.origin.reused) and not result.duration_s


def _detail(result: GateResult) -> str:
    match result.status:
        case "passed" if result.origin.reused and not result.changed_paths:
            return result.origin.reused if is_reused(result) else f"reused: {result.origin.reused}"
        case "failed" if result.exit_status and result.changed_paths:
            return (
                f"exit status {result.exit_status}; it changed {count_files(result.changed_paths)}"
            )
        case "failed" if not result.findings.excused:
            status = f"exit status {result.exit_status}" if result.exit_status else ""
            return "; ".join(filter(None, (status, result.reason)))
        case "killed" if result.signal:
            return result.reason or f"signal {result.signal}"
        case "unchecked" if not result.reason.startswith("nothing was "):
            return f"nothing was checked: {result.reason}"
        case _ if result.changed_paths:
            return describe(result)
        case _:
            return result.reason


def _only(result: GateResult, titles: list[str]) -> GateResult:
    """Return a result with these failures as its output; the log has all of it."""
    output = as_bytes("\n".join(titles))
    return result._replace(output=output, dropped_bytes=result.dropped_bytes or 1)


def shown_output(result: GateResult, *, colour: bool) -> bytes:
    """Return the output of a gate, indented, and where the rest of it is."""
    if not result.output:
        return b""
    from gitgates.core.clean import sanitise  # most runs show no output

    output = result.output
    if result.findings.failures:
        from gitgates.core.failure import say_all

        if say_all(result.findings.failures, output):
            output = as_bytes("\n".join(failure.title for failure in result.findings.failures))
    lines = sanitise(output.rstrip(b"\r\n"), colour=colour).split(b"\n")
    output = b"".join(b"  | " + line + b"\n" for line in lines)
    if result.dropped_bytes and result.log_abs:
        output += as_bytes(f"  full log: {escaped_line(result.log_abs)}\n")
    return output


def escaped_line(text: str) -> str:
    """Return text as one line, with control characters escaped: a path may have some."""
    if text.isascii() and text.isprintable():
        return text
    from gitgates.core.clean import visible  # seldom needed

    return visible(text).replace("\n", "\\n")


def _time(seconds: float) -> str:
    return _elapsed(seconds) if seconds >= _MINUTE_S else f"{seconds:.2f} s"


def _elapsed(seconds: float) -> str:
    minutes = f"{int(seconds) // _MINUTE_S} m " if seconds >= _MINUTE_S else ""
    return f"{minutes}{int(seconds) % _MINUTE_S:{'02' if minutes else ''}} s"


def as_bytes(text: str) -> bytes:
    """Return text as it is written: the bytes of a path that is not valid UTF-8 as they are."""
    return text.encode("utf-8", "surrogateescape")
