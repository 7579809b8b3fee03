"""`gitgates explain --reads GATE`: run a gate once under strace, and show what it has read."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from typing import Any

from gitgates.core.clean import counted, utf8, visible_line
from gitgates.core.errors import Interrupted, StateError
from gitgates.core.record import Record
from gitgates.core.types import Command, Config, Gate, Hook
from gitgates.engine.plan.plan import make_plan
from gitgates.engine.reuse.signed_keys import commands_for
from gitgates.git.repo import Repo
from gitgates.hosts import git as githook
from gitgates.observed.command import observed, why_not, why_not_here
from gitgates.observed.reads import Observation, read_output
from gitgates.observed.syscalls import ABSENT, CONTENT, LISTED, PROGRAM
from gitgates.proc.descendants import Descendants
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.traced import STRACE

_VERSION = 1
_FEW, _MOST_FOLDERS = 10, 12
_MOST_OUTPUT = 4096  # bytes, which say why a gate could not be started
_TEMPORARY = (tempfile.gettempdir() + "/",)


class GateReads(Record):
    """What a gate has read in one run."""

    gate: str
    why_not: str  # why it cannot be observed, or why this run's pass could not be reused; or empty
    exit_status: int | None  # None: it did not run
    duration_s: float
    content: tuple[str, ...]  # paths of files; absolute if outside of the root
    folders: tuple[str, ...]  # that were listed
    programs: tuple[str, ...]
    absent: tuple[str, ...]  # looked for, but not found
    written: tuple[str, ...]


def reads_of(repo: Repo, config: Config, gate: Gate) -> GateReads:
    """Run a gate on all files that it applies to, and return what it read.

    Raises: StateError if it could not be started, or did not end in time.
    """
    hook = next((each for each in config.hooks if gate.name in each.gates), Hook(name="manual"))
    paths = tuple(repo.git.names("ls-files", "-z"))
    event = githook.decode_by_hand(hook.name, paths, (), (repo.root_abs, repo.git_dir_abs))
    plan = make_plan(config, hook._replace(gates=(gate.name,)), event, {})
    commands = commands_for(plan, repo)(plan.steps[0])
    nothing = GateReads(gate.name, "", None, 0.0, (), (), (), (), ())
    problems = [why_not(command) for command in commands] or ["it has nothing to run on"]
    problems = [*filter(None, problems)] or [*filter(None, [why_not_here(commands[0].env)])]
    if problems:
        return nothing._replace(why_not=problems[0])
    began_s, observations, exit_status = time.monotonic(), list[Observation](), 0
    for command in commands:
        observation, status = _observe(command, gate)
        observations.append(observation)
        exit_status = exit_status or status
    return _joined(repo, nothing, observations)._replace(
        exit_status=exit_status, duration_s=time.monotonic() - began_s
    )


def _observe(command: Command, gate: Gate) -> tuple[Observation, int]:
    """Run a command; return what strace saw, and the exit status."""
    with tempfile.TemporaryDirectory(prefix="gitgates-reads-") as folder_abs:
        output_abs = f"{folder_abs}/strace"
        marked = command._replace(env={**command.env, STRACE: output_abs})
        traced, capture = observed(marked, output_abs), Capture(_MOST_OUTPUT)
        with SignalPipe() as signals, Group(signals) as group:
            child = group.start(traced, gate.schedule.timeout_s, capture, strace=output_abs)
            if not isinstance(child, str):
                group.wait()
        if isinstance(child, str) or not os.path.exists(output_abs):
            said = child if isinstance(child, str) else os.fsdecode(capture.captured()[0])
            raise StateError(f"gate `{gate.name}` could not be started: {visible_line(said)}")
        ending = child.ending()
        if ending.timed_out or ending.ended_by_us:
            Descendants(f"{STRACE}={output_abs}").end()
        if signals.received:
            raise Interrupted(f"interrupted by signal {signals.received[0]}")
        if ending.timed_out:
            what = f"gate `{gate.name}` did not end in {gate.schedule.timeout_s:g} s"
            raise StateError(what, "Set a longer `timeout` for the gate.")
        with open(output_abs, encoding="utf-8", errors="surrogateescape") as lines:
            status = -ending.signal if ending.signal else ending.exit_status or 0
            return read_output(lines, command.cwd_abs), status


def _joined(repo: Repo, nothing: GateReads, observations: list[Observation]) -> GateReads:
    """Return what all of a gate's commands read."""
    hows: dict[str, int] = {}
    written: set[str] = set()
    for observation in observations:
        for path, how in observation.reads.items():
            if not (path.startswith(_TEMPORARY) and path in observation.made):
                name = _shown(repo, path)
                hows[name] = hows.get(name, 0) | how
        written |= {_shown(repo, path) for path in observation.written if os.path.lexists(path)}
    why = next(filter(None, (each.spoilt or each.unreusable for each in observations)), "")

    def of(bit: int, without: int = 0) -> tuple[str, ...]:
        return tuple(sorted(path for path, how in hows.items() if how & bit and not how & without))

    return nothing._replace(
        why_not=why,
        content=of(CONTENT, LISTED),
        folders=of(LISTED),
        programs=of(PROGRAM),
        absent=of(ABSENT),
        written=tuple(sorted(written)),
    )


def _shown(repo: Repo, path: str) -> str:
    path_abs = os.path.normpath(path).removeprefix(f"{repo.root_abs}/")
    return path_abs.removeprefix(f"{os.path.realpath(repo.root_abs)}/")  # as strace names it


def reads_document(reads: GateReads) -> dict[str, Any]:
    """Return what a gate read as JSON."""
    lists = {name: [*map(utf8, value)] for name, value in reads._asdict().items() if name in _LISTS}
    return {"version": _VERSION, **reads._asdict(), **lists}


_LISTS = ("content", "folders", "programs", "absent", "written")


def reads_text(reads: GateReads) -> str:
    """Return what a gate read as text: files by folder, those outside the repository first."""
    if reads.exit_status is None:
        return f"gate `{reads.gate}` cannot be observed: {visible_line(reads.why_not)}\n"
    ended = f"ended with exit status {reads.exit_status} after {reads.duration_s:.1f} s"
    outside = [path for path in reads.content if path.startswith("/")]
    inside = [path for path in reads.content if not path.startswith("/")]
    lines = [
        f"gate `{reads.gate}` {ended}",
        *_by_folder("files outside the repository", outside),
        *_by_folder("files in the repository", inside),
        *_by_folder("looked for, but not found", [*reads.absent]),
        *_by_folder("written", [*reads.written]),
        f"programs: {', '.join(map(visible_line, reads.programs))}",
    ]
    if reads.why_not:
        lines.append(f"its dependencies cannot be determined: it {visible_line(reads.why_not)}")
    return "".join(f"{line}\n" for line in lines)


def _by_folder(title: str, paths: list[str]) -> list[str]:
    """Return the paths, or if there are many, a line for each folder, those with most first."""
    if not paths:
        return [f"{title}: none"]
    if len(paths) <= _FEW:
        return [f"{title}: {len(paths)}", *(f"  {visible_line(path)}" for path in paths)]
    counts = Counter(os.path.dirname(path) for path in paths)
    folders = counts.most_common(_MOST_FOLDERS)
    more = len(counts) - len(folders)
    return [
        f"{title}: {len(paths)}",
        *(f"  {visible_line(folder)}/ {count}" for folder, count in folders),
        *([f"  and {counted(more, 'more folder')}: --format json lists all"] if more else []),
    ]
