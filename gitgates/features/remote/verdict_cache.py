"""The cache of verdicts for one run: what a server answers in at most two seconds.

A child process talks to the server, because nothing else can interrupt a name lookup, for example.
Complete answers count, and whatever goes wrong is a miss, with one line that says why. Nothing here
is verified: the caller does that, and checks that an entry belongs to the key.
"""

from __future__ import annotations

import marshal
import os
import select
import time

from gitgates.core.record import Record
from gitgates.proc.call import kill_program, start_program
from gitgates.proc.helper import python_argv
from gitgates.store.files import make_folder, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

BUDGET_S = 2.0  # for all calls of a run
DOWN_S = 30.0  # how long a server that did not answer is not asked
_MOST_BYTES = 64 << 20  # of all answers: they are kept in memory
_CHILD = "gitgates.features.remote.transfer"
_LENGTH_BYTES = 4


class Server(Record):
    """Where the entries are, and absolute paths of the files needed to connect, or empty."""

    url: str
    ca: str = ""
    cert: str = ""
    key: str = ""
    netrc: str = ""
    needs_netrc: bool = False  # the configuration or the environment names that file

    @classmethod
    def of_table(cls, table: Mapping[str, Any], root_abs: str, env: Mapping[str, str]) -> Server:
        """Return the server that the configuration's table describes."""
        netrc = table["netrc"] or env.get("NETRC", "")
        paths = {name: table[name] for name in ("ca", "cert", "key")}
        paths["netrc"] = netrc or "~/.netrc"
        absolute = {
            name: os.path.abspath(os.path.join(root_abs, os.path.expanduser(path))) if path else ""
            for name, path in paths.items()
        }
        return cls(url=table["verdicts"], needs_netrc=bool(netrc), **absolute)


class VerdictCache:
    """Entries by key, for one run. No call raises; all together take at most two seconds."""

    def __init__(
        self,
        server: Server,
        env: Mapping[str, str],
        *,
        writes: bool,
        down_abs: str,
        say: Callable[[str], None],
    ) -> None:
        self._server, self._env, self._say = server, env, say
        self.writes = writes and bool(server.url)
        self.problem = ""  # what went wrong first, for people
        self._down_abs = down_abs  # a file that remembers that the server is down; empty: no file
        self._is_over = not server.url
        self._left_s = BUDGET_S
        self._child: _Child | None = None
        self._known: dict[str, bytes] = {}  # by key; empty: the server has none
        self._answers = 0

    def start(self) -> None:
        """Start the child, which takes a moment, before the keys are known."""
        if self._is_over or self._is_down():
            return
        try:
            self._child = self._child or _Child(self._server, self._env)
        except OSError as error:
            self._end(str(error))

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return key → entry, unverified, for the keys that the server has."""
        keys = list(dict.fromkeys(keys))
        for kind, key, entry in self._exchange(
            [("GET", k, b"") for k in keys if k not in self._known]
        ):
            if kind == "GET":
                self._known[key] = entry
        return {key: entry for key in keys if (entry := self._known.get(key, b""))}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Write entries, if this run may and while there is time. Call this last."""
        if self.writes:
            self._known |= entries
            for _written in self._exchange([("PUT", key, entry) for key, entry in entries.items()]):
                pass
        self.close()

    def close(self) -> None:
        """End the child, which would otherwise end with this process."""
        if self._child:
            self._child.kill()
        self._child = None

    def _exchange(self, requests: list[tuple[str, str, bytes]]) -> Iterator[tuple[str, str, bytes]]:
        """Send requests, and yield the answers that come before time is up."""
        if not requests or self._is_over or self._is_down():
            return
        began_s, number = time.monotonic(), 0
        try:
            self._child = self._child or _Child(self._server, self._env)
            for kind, key, body in self._child.ask(requests, began_s + self._left_s):
                if kind == "failed":
                    self._end(body.decode())
                    return
                if kind == "bad":
                    self._tell(f"{key[:12]}: {body.decode()}")
                number += 1
                self._answers += 1
                yield kind, key, body
        except TimeoutError:
            what = f"only {number} of {len(requests)} answers" if number else "no answer"
            self._end(f"{what} within {BUDGET_S:.0f} s")
        except (OSError, EOFError) as error:
            self._end(str(error))
        finally:
            self._left_s -= time.monotonic() - began_s

    def _is_down(self) -> bool:
        """Return whether the server has just failed for another run; report it."""
        if self._child or not self._down_abs:
            return False
        match read_cached(self._down_abs):
            case (tuple(server), float(time_s), str(why)) if server == tuple(self._server):
                ago_s = time.time() - time_s
                if 0 <= ago_s < DOWN_S:
                    self._is_over = True
                    self._tell(f"not asked, because it failed {ago_s:.0f} s ago: {why}")
        return self._is_over

    def _end(self, why: str) -> None:
        """Stop asking in this run and, if nothing was answered, in the next runs for a while."""
        self._is_over = True
        self.close()
        if not self._answers and self._down_abs:
            try:
                make_folder(os.path.dirname(self._down_abs))
                replace_cached(self._down_abs, (tuple(self._server), time.time(), why), sync=False)
            except OSError:
                pass  # the next run finds out itself
        self._tell(why)

    def _tell(self, why: str) -> None:
        if not self.problem:
            self.problem = why
            self._say(f"cache {self._server.url}: {why}")


class _Child:
    """The process that talks to the server: framed requests in, framed answers out."""

    def __init__(self, server: Server, env: Mapping[str, str]) -> None:
        self._process = start_program(python_argv(_CHILD, "-S"), env, apart=True)
        os.set_blocking(self._process.in_fd, False)
        self._unsent, self._unread = bytearray(framed(server._asdict())), bytearray()

    def ask(
        self, requests: list[tuple[str, str, bytes]], until_s: float
    ) -> Iterator[tuple[str, str, bytes]]:
        """Yield an answer to each request, in any order, or one that says why no more will come.

        Raises: TimeoutError if time is up; EOFError, OSError if the child has ended.
        """
        self._unsent += b"".join(map(framed, requests))
        unanswered, most_bytes = len(requests), _MOST_BYTES
        poll = select.poll()
        poll.register(self._process.out_fd, select.POLLIN)
        poll.register(self._process.in_fd, select.POLLOUT)
        while unanswered:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            if most_bytes <= 0:
                raise EOFError(f"its answers have more than {_MOST_BYTES >> 20} MiB")
            ready = [fd for fd, _events in poll.poll(left_s * 1000)]
            if self._process.in_fd in ready and not self._send():
                poll.unregister(self._process.in_fd)
            if self._process.out_fd in ready:
                data = os.read(self._process.out_fd, 1 << 20)
                if not data:
                    raise EOFError("the process that talks to it has ended")
                most_bytes -= len(data)
                self._unread += data
                for answer in self._whole():
                    unanswered -= 1
                    yield answer

    def _send(self) -> bool:
        """Send what the pipe takes; return whether there is more to send."""
        try:
            del self._unsent[: os.write(self._process.in_fd, self._unsent)]
        except BrokenPipeError:  # its last answer says why
            self._unsent.clear()
        return bool(self._unsent)

    def _whole(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield the complete answers."""
        while len(self._unread) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._unread[:_LENGTH_BYTES], "big")
            if len(self._unread) < end:
                return
            answer = marshal.loads(self._unread[_LENGTH_BYTES:end])  # noqa: S302 - of our own child
            del self._unread[:end]
            yield answer

    def kill(self) -> None:
        """End it."""
        kill_program(self._process)


def framed(message: Any) -> bytes:  # noqa: ANN401 - of types that `marshal` takes
    """Return a message after its length."""
    body = marshal.dumps(message)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body
