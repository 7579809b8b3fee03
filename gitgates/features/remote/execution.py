"""Run a gate on a server of the Remote Execution API, and report how it ended.

An exit status says little: a sandbox that cannot start answers 1, which is cached, and a crashed
runner may answer 0. So a wrapper runs the gate and writes its exit status to a file, which is an
output of the action, with a token that no other action has. A result counts only if the server says
OK and has that file. Anything else is "could not run", with the reason: neither a pass nor a
failure.
"""

from __future__ import annotations

import functools
import math
import os
import queue
import re
import signal
import threading
import time

import grpc
from google.protobuf.message import DecodeError

from gitgates.core.clean import visible_line
from gitgates.core.record import Record
from gitgates.engine.reuse.visible_content import digest
from gitgates.features.remote import protos
from gitgates.features.remote.connection import Connection, ServerError, status_text
from gitgates.features.remote.gates import RemoteEnd
from gitgates.features.remote.log_stream import LogStream
from gitgates.features.remote.outputs import Outputs
from gitgates.features.remote.storage import Storage
from gitgates.features.remote.tree import Digest, digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.message import Message

    from gitgates.core.types import Config, Gate
    from gitgates.features.remote.tree import InputRoot
    from gitgates.git.repo import Repo

# The gate's files are in a folder below the action's root, because some servers mount their own
# folders, such as /bin, over folders of that name in the root.
_FOLDER = "checkout"
_END = "gitgates/end"
_ROOT = "gitgates/root"  # a file with the absolute path of the root there
# $1: the token; $2: the gate's folder. The gate is started by `exec`, because a word may also be a
# builtin of the shell. If nothing sets PATH, it is the shell's default, which may have no mkdir.
# What the shell itself writes, such as "not found", is part of the output.
_WRAPPER = """\
export PATH
end=$PWD/gitgates/end token=$1 root=$PWD
cd "$2" && shift 2 || exit 125
(exec "$@") </dev/null 2>&1
status=$?
[ -d "${end%/*}" ] || mkdir -p "${end%/*}" && printf %s "$root" >"${end%/*}/root" &&
    printf '%s %s\\n' "$token" "$status" >"$end"
exit "$status"
"""
_CANNOT = {126: "the program could not be started there", 127: "command not found there"}
_LOST = ("FAILED_PRECONDITION", "NOT_FOUND")  # a blob, by the API; by buildbox-casd
_READ_ERROR = re.compile(rb"(?i)\b(?:input/output|i/o) error")
_NO_REPOSITORY = b"fatal: not a git repository"
# Another program ended the gate, such as the server, or Linux when memory ran out; or a limit did.
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGXFSZ)
_ENDED = {128 + number: number.name for number in _SIGNALS}
_CALL_S = 10.0  # of a call that does not wait for a gate
_QUIET_S = 10.0  # after which a silent server is asked for its capabilities
_POLL_S = 0.1
_CANCEL_S = 2.0
_MOST_REASON = 300
_MOST_PATH = 4096
_WAITS = 3  # how often we connect to wait for the same gate
_PAUSE_S = 0.5
_FIRST_VERSION = (2, 1)  # which has `output_paths`
_LATE = "it had not started there after half of its time limit"
_BEFORE = (1, 2)  # stages of an action: CACHE_CHECK, QUEUED
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class RemoteCommand(Record):
    """The command that the server runs."""

    argv: tuple[str, ...]
    env: Mapping[str, str]  # complete, except for what the server adds
    cwd: str = "."  # relative to the root of the files
    root_abs: str = ""  # the local root, below which `outputs` are written; empty: they are not


class _Action(Record):
    digest: Digest
    blobs: Mapping[Digest, bytes]
    token: str
    is_cached: bool  # the server may keep its result, and answer with an earlier one
    root_abs: str  # the local root


class RemoteExecution:
    """Runs gates on the server of `[tool.gitgates.remote]`."""

    def __init__(
        self,
        repo: Repo,
        config: Config,
        say: Callable[[str], None],
        is_over: Callable[[], bool] = lambda: False,
        *,
        connection: Connection | None = None,
    ) -> None:
        """Connect to the server, or use the connection of other gates.

        `say` gets messages for people; `is_over` returns whether nobody wants the result any more.

        Raises: GitgatesError if a file that the configuration names cannot be read.
        """
        self._repo, self._table = repo, config.tables["remote"]
        self._say, self._is_over = say, is_over
        self._most_output = config.max_log_bytes
        self._connection = connection or Connection(self._table, repo.root_abs)
        place = f"{self._table['execution']} {self._table['instance']}"
        stored_abs = f"{repo.shared_state_abs}/remote-{digest(place)[:16]}.stored"
        self._storage = Storage(self._connection, stored_abs, self._left_s)
        self._end_s = 0.0  # after half of the gate's time, or all of it once the gate has started
        self._last_s = 0.0

    def run(
        self,
        gate: Gate,
        command: RemoteCommand,
        input_root: InputRoot,
        on_output: Callable[[bytes], None] = lambda _data: None,
        *,
        within_s: float = math.inf,
        on_start: Callable[[], None] = lambda: None,
    ) -> RemoteEnd:
        """Run one command of a gate there, within `within_s` and the gate's `timeout_s`.

        `on_start` is called when the server reports a start time: the stage alone may mean that the
        command still waits for its runner.

        Raises: what `InputRoot.blob` raises if a file is not sent.
        """
        within_s = min(within_s, gate.schedule.timeout_s)
        self._last_s = time.monotonic() + within_s
        self._end_s = self._last_s - within_s / 2
        self._on_start = on_start
        self._log = LogStream(self._connection, on_output, self._most_output)
        action_digest = ""
        try:
            action = self._action(gate, command, input_root.digest)
            action_digest = f"{action.digest.hash}/{action.digest.size_bytes}"
            end = self._run(action, input_root, functools.partial(self._bring_back, gate, command))
            if end.output is not None and not self._log.end_with(end.output):
                end = end._replace(output=None)
            return end._replace(action_digest=action_digest)
        except UnicodeEncodeError as error:
            reason = f"{visible_line(repr(error.object)[:_MOST_REASON])} is not UTF-8"
            return RemoteEnd(reason=reason)
        except DecodeError as error:
            return RemoteEnd(reason=f"the server's answer cannot be read: {error}")
        except ServerError as error:
            is_late = not self._left_s() and self._end_s < self._last_s
            return RemoteEnd(
                reason=_LATE if is_late else error.reason,
                action_digest=action_digest,
                is_down=error.is_down or self._connection.capabilities is None,
            )
        finally:
            self._log.stop()

    def _left_s(self) -> float:
        return max(self._end_s - time.monotonic(), 0)

    def _call_s(self) -> float:
        return min(self._left_s(), _CALL_S)

    def capabilities(self, within_s: float) -> Message:
        """Return the server's capabilities. Raises: ServerError if it cannot run gates."""
        request = protos.message("GetCapabilitiesRequest")(instance_name=self._connection.instance)
        answer = self._connection.call("Capabilities.GetCapabilities", request, within_s)
        version = answer.high_api_version
        execution = answer.execution_capabilities
        sha256 = protos.message("DigestFunction").Value.Value("SHA256")
        if not execution.exec_enabled:
            raise ServerError("the server does not execute actions", is_down=True)
        if sha256 not in (execution.digest_function, *execution.digest_functions):
            raise ServerError("the server does not use SHA-256", is_down=True)
        if (version.major, version.minor) < _FIRST_VERSION:
            text = f"the server has version {version.major}.{version.minor} of the API, not 2.1"
            raise ServerError(text, is_down=True)
        return answer

    def _action(self, gate: Gate, given: RemoteCommand, root: Digest) -> _Action:
        folder = _FOLDER if given.cwd == "." else f"{_FOLDER}/{given.cwd}"
        directory = protos.message("Directory")()
        node = directory.directories.add(name=_FOLDER)
        node.digest.hash, node.digest.size_bytes = root
        platform = dict(self._table["platform"])
        if gate.remote.image:
            platform["container-image"] = gate.remote.image
        argv = ["/bin/sh", "-c", _WRAPPER, "sh", "", folder, *given.argv]
        outputs = sorted({f"{_FOLDER}/{name.strip('/')}" for name in gate.remote.outputs})
        command = protos.message("Command")(output_paths=[*outputs, _END, _ROOT], arguments=argv)
        for name, value in sorted(given.env.items()):
            command.environment_variables.add(name=name, value=value)
        for name, value in sorted(platform.items()):
            command.platform.properties.add(name=name, value=value)
        directory_bytes = protos.serialized(directory)
        token = digest(protos.serialized(command), directory_bytes, f"{gate.schedule.timeout_s:g}")
        command.arguments[4] = token
        command_bytes = protos.serialized(command)
        is_cached = bool(gate.reuse.mode) and not (gate.reuse.reads or gate.reuse.max_age_s)
        action = protos.message("Action")(do_not_cache=not is_cached)
        for field, content in (
            (action.command_digest, command_bytes),
            (action.input_root_digest, directory_bytes),
        ):
            field.hash, field.size_bytes = digest_of(content)
        action.timeout.seconds = math.ceil(gate.schedule.timeout_s)  # some servers ignore fractions
        action.platform.CopyFrom(command.platform)
        blobs = (directory_bytes, command_bytes, protos.serialized(action))
        return _Action(
            digest=digest_of(blobs[-1]),
            blobs={digest_of(each): each for each in blobs},
            token=token,
            is_cached=is_cached,
            root_abs=given.root_abs,
        )

    def _bring_back(self, gate: Gate, command: RemoteCommand, result: Message) -> None:
        if gate.remote.outputs and command.root_abs:
            outputs = Outputs(self._storage, _FOLDER, gate.remote.outputs)
            outputs.write(result, self._repo, command.root_abs, self._say)

    def _run(
        self, action: _Action, root: InputRoot, bring_back: Callable[[Message], None]
    ) -> RemoteEnd:
        if self._connection.capabilities is None:
            self._connection.capabilities = self.capabilities(self._call_s()).cache_capabilities
        self._storage.learn(self._connection.capabilities)
        try:
            response = self._sent_and_executed(action, root, skips_cache=not action.is_cached)
        except ServerError as error:
            if error.code != "CANCELLED":
                self._storage.forget()
            if error.code not in _LOST:
                raise
            # It has lost a blob that it claimed to have.
            response = self._sent_and_executed(action, root, skips_cache=not action.is_cached)
        end = self._end_of(action, response)
        if response.cached_result and end.status != "passed":
            # The sandbox may have failed, or the failure may have been temporary.
            response = self._sent_and_executed(action, root, skips_cache=True)
            end = self._end_of(action, response)
        if (
            end.status == "failed" or _READ_ERROR.search(end.output or b"")
        ) and self._storage.lacks((*action.blobs, *root.directories, *root.files)):
            # If files are shown by FUSE, a gate cannot read one that the server has lost.
            self._storage.forget()
            response = self._sent_and_executed(action, root, skips_cache=True)
            end = self._end_of(action, response)
        if end.status != "could-not-run":
            bring_back(response.result)
        return end

    def _sent_and_executed(self, action: _Action, root: InputRoot, *, skips_cache: bool) -> Message:
        self._storage.send(
            (*action.blobs, *root.directories, *root.files),
            lambda digest: action.blobs.get(digest) or root.blob(digest),
        )
        if self._is_over():
            raise ServerError("cancelled", code="CANCELLED")
        request = protos.message("ExecuteRequest")(
            instance_name=self._connection.instance, skip_cache_lookup=skips_cache
        )
        request.action_digest.hash, request.action_digest.size_bytes = action.digest
        operation = self._finished("Execution.Execute", request)
        if operation.WhichOneof("result") == "error":
            raise _error_of(operation.error)
        response = protos.message("ExecuteResponse")()
        if not operation.response.Unpack(response):
            raise ServerError("the server's answer is not a result")
        if response.status.code:
            raise _error_of(response.status)
        if skips_cache and response.cached_result:
            raise ServerError("the server answered from its cache, although it was asked not to")
        self._end_s = self._last_s
        return response

    def _finished(self, method: str, request: Message) -> Message:
        """Return a finished operation; cancel one that is no longer waited for.

        Raises: ServerError.
        """
        name = ""
        try:
            for left in reversed(range(_WAITS)):
                events: queue.SimpleQueue[Message | BaseException] = queue.SimpleQueue()
                call = self._connection.stream(
                    method, request, self._last_s - time.monotonic() + _CANCEL_S
                )
                threading.Thread(target=_read, args=(call, events), daemon=True).start()
                try:
                    while not isinstance(event := self._next(events), BaseException):
                        name = event.name or name
                        about = _about(event)
                        self._note_progress(about)
                        if event.done:
                            name = ""
                            return event
                        self._log.follow(about.stdout_stream_name, self._last_s - time.monotonic())
                except _Over as over:
                    if not name:  # the name comes at once; nothing can be cancelled without it
                        name = _name_within(events, _CANCEL_S)
                    raise ServerError(str(over), code="CANCELLED") from None
                finally:
                    call.cancel()
                error = _stream_error(event)
                if not (left and name and error.code == "UNAVAILABLE"):
                    if method != "Execution.Execute":  # the operation is lost, not a blob
                        error.code = ""
                    raise error
                time.sleep(min(_PAUSE_S, self._left_s()))
                method = "Execution.WaitExecution"
                request = protos.message("WaitExecutionRequest")(name=name)
            raise AssertionError
        finally:
            if name:
                self._cancel(name)

    def _note_progress(self, about: Message) -> None:
        if about.stage not in _BEFORE:
            self._end_s = self._last_s
        if about.partial_execution_metadata.HasField("execution_start_timestamp"):
            self._on_start()

    def _next(self, events: queue.SimpleQueue[Message | BaseException]) -> Message | BaseException:
        asks_s = time.monotonic() + _QUIET_S
        while True:
            if self._is_over():
                raise _Over("cancelled")
            if not self._left_s():
                raise _Over("the gate's time limit is over")
            try:
                return events.get(timeout=_POLL_S)
            except queue.Empty:
                if time.monotonic() > asks_s:
                    asks_s += _QUIET_S + _CALL_S
                    threading.Thread(target=self._ask, args=(events,), daemon=True).start()

    def _ask(self, events: queue.SimpleQueue[Message | BaseException]) -> None:
        """Queue an error if the server is gone: a connection may end silently."""
        try:
            self.capabilities(_CALL_S)
        except ServerError as error:
            reason = f"the server no longer answers: {error.reason}"
            events.put(ServerError(reason, code=error.code, is_down=True))

    def _cancel(self, name: str) -> None:
        request = protos.message("google.longrunning.CancelOperationRequest")(name=name)
        method = "google.longrunning.Operations.CancelOperation"
        try:
            self._connection.call(method, request, _CANCEL_S, repeats=False)
        except ServerError as error:
            # Servers without this method end an action that nobody waits for. A server that is gone
            # has already been reported.
            if error.code not in ("UNIMPLEMENTED", "NOT_FOUND") and not error.is_down:
                self._say(f"the gate could not be cancelled on the server: {error.reason}")

    def _end_of(self, action: _Action, response: Message) -> RemoteEnd:
        result = response.result
        if result.exit_code in _CANNOT or result.exit_code in _ENDED:
            what = _CANNOT.get(result.exit_code) or f"ended there by {_ENDED[result.exit_code]}"
            return RemoteEnd(reason=self._with_output(what, result, "stdout"))
        mark = digest_of(b"%s %d\n" % (action.token.encode(), result.exit_code))
        ends = [file.digest for file in result.output_files if file.path == _END]
        if [(each.hash, each.size_bytes) for each in ends] != [mark]:
            what = f"the gate did not run to its end there (exit status {result.exit_code})"
            return RemoteEnd(reason=self._with_output(what, result, "stderr"))
        output = self._output(result, "stdout", self._most_output)
        if _NO_REPOSITORY in output:  # of a pass, too: it may have checked no file
            return RemoteEnd(reason="it runs git, and there is no repository there")
        return RemoteEnd(
            status="failed" if result.exit_code else "passed",
            exit_status=result.exit_code,
            output=self._with_local_paths(output, result, action.root_abs),
            is_cached=response.cached_result,
        )

    def _with_local_paths(self, output: bytes, result: Message, root_abs: str) -> bytes:
        """Return output in which absolute paths are those of the local files."""
        roots = [file.digest for file in result.output_files if file.path == _ROOT]
        if not (root_abs and roots and f"/{_FOLDER}/".encode() in output):
            return output
        there = os.path.join(self._storage.read(roots[0], _MOST_PATH), _FOLDER.encode())
        start = re.compile(rb"(?<![\w./~-])" + re.escape(there) + rb"(?=/)")
        return start.sub(lambda _match: os.fsencode(root_abs), output)

    def _with_output(self, what: str, result: Message, name: str) -> str:
        """Return a reason, with what the server or the shell wrote about it."""
        try:
            text = self._output(result, name, _MOST_REASON).decode(errors="replace").strip()
        except ServerError:
            text = ""
        return f"{what}: {visible_line(text)}" if text else what

    def _output(self, result: Message, name: str, most: int) -> bytes:
        raw: bytes = getattr(result, f"{name}_raw")
        digest = getattr(result, f"{name}_digest")
        dropped = (len(raw) or digest.size_bytes) - most
        if dropped > 0 and most == self._most_output:
            self._say(f"the first {dropped} bytes of its output were dropped")
        return raw[-most:] if raw else self._storage.read(digest, most)


class _Over(Exception):
    """Raised if nobody waits for the result any more."""


def _about(operation: Message) -> Message:
    """Return an operation's metadata: its stage, and where its output is streamed."""
    about = protos.message("ExecuteOperationMetadata")()
    operation.metadata.Unpack(about)
    return about


def _read(call: grpc.Call, events: queue.SimpleQueue[Message | BaseException]) -> None:
    """Queue a call's answers; the last entry is an exception."""
    try:
        for operation in call:
            events.put(operation)
        events.put(ServerError("the server ended its answer before the gate ended"))
    except Exception as error:  # noqa: BLE001 - whoever reads the queue tells them apart
        events.put(error)


def _name_within(events: queue.SimpleQueue[Message | BaseException], wait_s: float) -> str:
    try:
        event = events.get(timeout=wait_s)
    except queue.Empty:
        return ""
    return "" if isinstance(event, BaseException) or event.done else str(event.name)


def _stream_error(event: BaseException) -> ServerError:
    if isinstance(event, ServerError):
        return event
    if isinstance(event, grpc.RpcError):
        return ServerError.of(event)
    return ServerError(f"{type(event).__name__}: {event}")


def _error_of(status: Message) -> ServerError:
    name = _CODES.get(status.code, f"status {status.code}")
    return ServerError(status_text(name, status.message), code=name)
