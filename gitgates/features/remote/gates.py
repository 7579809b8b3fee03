"""A run's gates that go to a server of the Remote Execution API, as commands to start here.

Another process, worker.py, talks to the server for all of them, so the run itself does not load
gRPC. Here, such a gate is a child process like any other, a `cat` of what the worker writes into a
pipe, so limits, ^C and the capture of output work the same way. A file says how the gate ended.
"""

from __future__ import annotations

import contextlib
import marshal
import os

from gitgates.core.record import Record
from gitgates.engine.plan.plan import AUDIT, REUSE
from gitgates.proc.helper import Helper, python_argv
from gitgates.store.files import make_folder, open_state, read_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.types import Command, Config, Ending, Gate, Step
    from gitgates.git.repo import Repo

_WORKER = "gitgates.features.remote.worker"
_COPY = ("cat",)
_STARTED = ".started"  # beside the file that says how the gate ended
_ALWAYS = ("GITGATES_HOOK",)
_RUN_HERE = ("pass_hook_input", "baseline", "ratchet")  # gates with these need more than files


class GateRequest(Record):
    """What the worker must run: plain data, because the worker is another process."""

    root_abs: str  # the working tree, or private checkout, that the gate sees
    repo_abs: str  # the user's working tree
    table: Mapping[str, Any]  # `[tool.gitgates.remote]`
    gate: Mapping[str, Any]
    paths: tuple[str, ...]  # that the gate is given
    argv: tuple[str, ...]
    env: Mapping[str, str]  # of the gate there: only what is declared
    cwd: str  # relative to the root
    within_s: float
    most_output: int  # bytes of output that are kept
    end_abs: str  # the file for how it ended


class RemoteEnd(Record):
    """How a gate ended on the server, or why it did not run there."""

    status: str = "could-not-run"  # or passed, failed
    exit_status: int = 1
    reason: str = ""
    action_digest: str = ""  # "HASH/SIZE"
    is_cached: bool = False  # the server had the result
    is_down: bool = False  # other gates cannot run there, either
    notes: tuple[str, ...] = ()  # for people
    output: bytes | None = None  # the whole output, if it replaces what was streamed
    has_started: bool = False  # the server has reported a start time


class SentRequest(Record):
    """A gate that the worker was asked to run."""

    read_fd: int  # its pipe; -1: it could not be made
    end_abs: str
    problem: str = ""  # why the request was not sent


def local_keys(gate: Gate) -> list[str]:
    """Return the keys of a gate that keep it on this machine, whatever `remote` says."""
    table = gate.table()
    names = [name for name in _RUN_HERE if table[name]]
    return names if gate.program.pre_commit is None else [*names, "pre-commit"]


class RemoteGates:
    """Which gates may go to the server, how they are started, and how they ended."""

    def __init__(self, repo: Repo, config: Config) -> None:
        table = config.tables["remote"]
        self._repo, self._table = repo, table
        self._most_output = config.max_log_bytes
        self.place: str = table["execution"]
        self.jobs: int = table["jobs"]
        self.falls_back = table["fallback"] == "local"
        self._number = 0
        self._folder_abs = ""
        self._worker: Helper | None = None
        self._asked: dict[str, SentRequest] = {}  # by the standard input of the local child

    def may_run(self, step: Step) -> bool:
        """Return whether a gate may run there, because it needs only files."""
        return bool(step.gate.remote.allowed and step.gate.program.command) and not local_keys(
            step.gate
        )

    def conditions(self, gate: Gate) -> str:
        """Return what a verdict there depends on, beyond what it depends on here.

        Raises: GitgatesError, OSError if a file cannot be read.
        """
        server = [self._table[name] for name in ("execution", "instance", "platform")]
        ignored = []
        if gate.remote.ignored_inputs:
            from gitgates.features.remote.inputs import IgnoredContent  # few gates have some

            ignored = [
                IgnoredContent(self._repo, path).identity for path in gate.remote.ignored_inputs
            ]
        return repr((server, gate.remote.image, gate.remote.ignored_inputs, ignored))

    def command(
        self, step: Step, command: Command, *, root_abs: str, run_abs: str, within_s: float
    ) -> Command:
        """Ask the worker to run a command of a gate, and return what is started here instead."""
        gate = step.gate
        if self._repo.env.get(REUSE) in ("0", AUDIT):
            gate = gate.changed(reuse=False)  # so that the server reuses no result, either
        self._number += 1
        self._folder_abs = f"{run_abs}/remote-{os.getpid()}"
        request_abs = f"{self._folder_abs}/{self._number}"
        end_abs = f"{request_abs}.end"
        request = GateRequest(
            root_abs=root_abs,
            repo_abs=self._repo.root_abs,
            table=dict(self._table),
            gate=gate.table(),
            paths=step.paths,
            argv=command.argv,
            env=declared_env(gate, command.env),
            cwd=os.path.relpath(command.cwd_abs, root_abs),
            within_s=within_s,
            most_output=self._most_output,
            end_abs=end_abs,
        )
        read_fd = write_fd = -1
        problem = ""
        try:
            read_fd, write_fd = os.pipe()
            make_folder(self._folder_abs)
            with open(request_abs, "x+b", opener=open_state) as file:
                file.write(marshal.dumps(request._asdict()))
                file.seek(0)
                self.start_worker().send(file.fileno(), write_fd)
        except OSError as error:
            problem = f"its request cannot be sent: {error}"
        finally:
            _close(write_fd)  # if it was not sent, there is nothing to read
            remove_file(request_abs)
        stdin_abs = f"/dev/fd/{read_fd}"
        self._asked[stdin_abs] = SentRequest(read_fd, end_abs, problem)
        cwd_abs, env = self._repo.root_abs, self._repo.env
        return command._replace(argv=_COPY, cwd_abs=cwd_abs, env=env, stdin_abs=stdin_abs)

    def end_of(self, command: Command, ending: Ending) -> RemoteEnd:
        """Return how a gate ended once its local child has ended; remove its files."""
        asked = self._asked.pop(command.stdin_abs)
        _close(asked.read_fd)  # this cancels what still runs there
        try:
            end = RemoteEnd(**marshal.loads(read_state(asked.end_abs) or b""))  # noqa: S302 - of our own worker
        except (EOFError, OSError, TypeError, ValueError):
            how = f": {ending.not_started}" if ending.not_started else ""
            reason = asked.problem or f"the process that talks to the server ended early{how}"
            end = RemoteEnd(reason=reason, is_down=bool(asked.problem))
        remove_file(asked.end_abs)
        has_started = os.path.exists(f"{asked.end_abs}{_STARTED}")
        if has_started:
            remove_file(f"{asked.end_abs}{_STARTED}")
        return end._replace(has_started=has_started)

    def close(self) -> None:
        """End the worker, which cancels the gates that still run there."""
        for asked in self._asked.values():
            _close(asked.read_fd)
        self._asked.clear()
        if self._worker:
            self._worker.close()
            self._worker = None
        with contextlib.suppress(OSError):  # there may be a log in the folder above
            for name in os.listdir(self._folder_abs):
                remove_file(f"{self._folder_abs}/{name}")
            os.rmdir(self._folder_abs)
            os.rmdir(os.path.dirname(self._folder_abs))

    def start_worker(self) -> Helper:
        """Return the worker, started if needed, which takes a moment. Raises: OSError."""
        if not self._worker:
            self._worker = Helper(
                python_argv(_WORKER), {"GRPC_VERBOSITY": "NONE", **self._repo.env}
            )
        return self._worker


def note_start(end_abs: str) -> None:
    """Tell the process that sent the request that the gate has started on the server."""
    with contextlib.suppress(OSError):  # then it counts as not started
        os.close(open_state(f"{end_abs}{_STARTED}", os.O_WRONLY | os.O_CREAT))


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def declared_env(gate: Gate, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a gate declares; no others are sent."""
    names = {*_ALWAYS, *(name for name, _value in gate.program.env)}
    for name in gate.reuse.env_inputs:
        is_start = name.endswith("*")
        names |= {each for each in env if each.startswith(name[:-1])} if is_start else {name}
    return {name: env[name] for name in sorted(names) if name in env}
