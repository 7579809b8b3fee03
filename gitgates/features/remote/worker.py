"""The child process that has one gate run on the server: see gates.py.

Its output is that of the gate, and nothing else. SIGTERM cancels the gate there; so does the end of
the run that has started this process.
"""

from __future__ import annotations

import marshal
import os
import signal

from gitgates.core import environ
from gitgates.core.errors import GitgatesError
from gitgates.core.types import Config, Gate
from gitgates.features.remote.gates import ChildEnd, GateRequest
from gitgates.git.repo import find_repo
from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_CANCELLED = 1  # our own exit status; a gate's is in ChildEnd
INSTALL = "grpcio and protobuf are not installed: pip install 'gitgates[remote]'"


class _Life:
    """Whether anybody still wants the result."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._is_over = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._is_over = True

    def is_over(self) -> bool:
        """Return whether the gate is to be cancelled."""
        return self._is_over or os.getppid() != self._parent


def main() -> None:
    """Read a request from standard input, have it run, and write how it ended."""
    life = _Life()
    with open(0, "rb") as file:
        request = GateRequest(**marshal.load(file))  # noqa: S302 - of our own parent
    notes: list[str] = []
    try:
        end = _run(request, life, notes)
    except ImportError as error:
        is_missing = (error.name or "").partition(".")[0] in ("grpc", "google")
        end = ChildEnd(reason=INSTALL if is_missing else str(error), is_down=True)
    except GitgatesError as error:
        end = ChildEnd(reason=error.message)
    except BrokenPipeError:  # nobody reads the output
        end = ChildEnd(reason="cancelled")
    except Exception as error:  # noqa: BLE001 - whatever it is, the gate has not run
        end = ChildEnd(reason=f"{type(error).__name__}: {error}")
    with open(request.end_abs, "xb", opener=open_state) as file:
        marshal.dump(end._replace(notes=tuple(notes))._asdict(), file)
    os._exit(_CANCELLED if life.is_over() else 0)  # threads of gRPC are not waited for


def _run(request: GateRequest, life: _Life, notes: list[str]) -> ChildEnd:
    # What they need may not be installed.
    from gitgates.features.remote.execution import RemoteCommand, RemoteExecution
    from gitgates.features.remote.tree import input_root

    gate = Gate(**request.gate)
    repo = find_repo(request.repo_abs, environ.read())
    config = Config(tables={"remote": request.table})
    server = RemoteExecution(repo, config, notes.append, life.is_over)
    more = (*gate.ignored_inputs, *(request.paths if gate.inputs else ()))
    not_secret = request.table["not_secret"]
    root = input_root(repo, request.root_abs, gate.inputs, more, not_secret=not_secret)
    command = RemoteCommand(request.argv, request.env, request.cwd, request.root_abs)
    end = server.run(gate, command, root, _write_output)
    return ChildEnd(
        status=end.status,
        exit_status=end.exit_status,
        reason=end.reason,
        action=end.action_digest,
        is_down=end.is_down,
        output=end.output if end.replaces else None,
    )


def _write_output(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
