"""Run one turn of an agent's client with a deadline, and end everything that it started with it.

Also waits before a repetition, if the model's service is busy or unreachable.
"""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from signal import Signals

from gitgates.core.errors import Interrupted, UsageError
from gitgates.core.types import Command, Ending
from gitgates.hosts import withheld_from_agents
from gitgates.hosts.headless import UNREADABLE, Turn
from gitgates.proc.descendants import Descendants
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.store.files import make_folder, read_or_empty, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.engine.plan.listener import Listener
    from gitgates.git.repo import Repo
    from gitgates.hosts.headless import Client, Start

RUN_NAME = "GITGATES_HEADLESS"
_MOST_OUTPUT = 64 << 20  # bytes
_LONGEST_WAIT_S = 300.0
_TICK_S = 0.1
# As clients and libraries word it. HTTP statuses: too many requests, and server errors.
_TEMPORARY = re.compile(
    r"\b(?:429|50[0234]|529)\b|rate.?limit|too many requests|overloaded|bad gateway|"
    r"(?:temporarily|service) unavailable|gateway time.?out|request timed out|"
    r"\bE(?:CONNRESET|CONNREFUSED|TIMEDOUT|TIMEOUT|NOTFOUND|AI_AGAIN|NETUNREACH|HOSTUNREACH|PIPE)\b|"
    r"getaddrinfo|name resolution|socket hang up|fetch failed|network error|stream disconnected|"
    r"connection (?:error|reset|refused|aborted|closed|timed out)|connect(?:ion)? timeout",
    re.IGNORECASE,
)
# Waiting helps with none of these.
_LASTING = re.compile(r"insufficient.quota|credit balance|billing|payment", re.IGNORECASE)
_HOOKS_S = 1800.0  # for the git hooks
_SHOWN = 2000  # characters of what went wrong
# Separates standard error, because standard output is what the client writes for machines. First,
# the shell enters the control group, if there is one.
_WITH_STDERR_APART = """
[ -z "$1" ] || { echo 0 >"$1/cgroup.procs"; } 2>/dev/null
shift
exec "$@" 2>"$0"
"""


def require_outermost(repo: Repo) -> None:
    """Raise UsageError in a process that a headless run started."""
    if running := repo.env.get(RUN_NAME):
        raise UsageError(f"the headless run {running} started this", "Runs cannot be nested.")


def run_turn(
    client: Client,
    start: Start,
    repo: Repo,
    *,
    folder_abs: str,
    limit_s: float,
    on_tick: Callable[[], None],
) -> Turn:
    """Start the client with a prompt, end what it leaves running, and parse its output.

    `repo` has the client's environment; `folder_abs` gets the prompt and the output.

    Raises: Interrupted after a signal; OSError.
    """
    make_folder(folder_abs)
    stdin_abs = ""
    if start.stdin:
        stdin_abs = f"{folder_abs}/prompt.txt"
        replace_file(stdin_abs, start.stdin)
    withheld = withheld_from_agents()
    env = {name: value for name, value in repo.env.items() if name not in withheld}
    errors_abs = f"{folder_abs}/stderr.log"
    descendants = Descendants(f"{RUN_NAME}={repo.env[RUN_NAME]}")
    argv = ("/bin/sh", "-c", _WITH_STDERR_APART, errors_abs, descendants.cgroup_abs, *start.argv)
    command, log_abs = Command(argv, repo.root_abs, env, stdin_abs), f"{folder_abs}/stdout.log"
    output, ending = _run_process(command, log_abs, limit_s, on_tick, descendants=descendants)
    turn = client.read(output)
    if ending.timed_out:
        return turn._replace(error=f"it did not finish within {limit_s:.0f} s", timed_out=True)
    error = turn.error
    if ending.exit_status != 0 and error in ("", UNREADABLE):
        by_signal = ending.signal and f"killed by {Signals(ending.signal).name}"
        error = by_signal or f"exit status {ending.exit_status}"
    said = read_or_empty(errors_abs)[-_SHOWN:].decode("utf-8", "replace").strip()
    return turn._replace(error=f"{error}\n{said}".strip() if error else "")


def without_earlier(turn: Turn, client: Client, earlier: list[dict[str, Any]]) -> Turn:
    """Subtract what earlier turns of the same conversation used from a client's totals."""
    same = [each for each in earlier if each.get("session") == turn.session]
    for name in client.totals:
        total, before = getattr(turn, name), sum(each.get(name, 0) for each in same)
        if total is not None and total >= before:  # else the client has restarted its count
            turn = turn._replace(**{name: round(total - before, 6)})
    return turn


def _run_process(
    command: Command,
    log_abs: str,
    limit_s: float,
    on_tick: Callable[[], None],
    *,
    descendants: Descendants | None = None,
) -> tuple[bytes, Ending]:
    """Run a process and its process group to the end; return its output and how it ended.

    `on_tick` is called periodically until it ends; then `descendants` are ended.

    Raises: Interrupted after a signal, when all started processes have ended.
    """
    capture, watch = Capture(_MOST_OUTPUT, log_abs, _MOST_OUTPUT), Watchdog()  # if we are killed
    try:
        with SignalPipe() as signals, ExitStack() as at_end, Group(signals, on_tick) as group:
            if descendants:
                watch.add_descendants(descendants.mark, descendants.cgroup_abs)
                at_end.callback(descendants.end)
            child = group.start(command, limit_s, capture)
            if isinstance(child, str):
                return child.encode(), Ending(not_started=child, exit_status=127)
            watch.add(child.pid)
            group.wait()
    finally:
        watch.close()
    if signals.received:
        raise Interrupted(f"interrupted by signal {signals.received[0]}")
    return capture.captured()[0], child.ending()


def run_git(repo: Repo, *args: str, log_abs: str, on_tick: Callable[[], None]) -> str:
    """Run a git command and its hooks; return what it said if it failed.

    Raises: Interrupted after a signal.
    """
    argv = ("git", "-C", repo.root_abs, *args)
    command = Command(argv, repo.root_abs, repo.env)
    output, ending = _run_process(command, log_abs, _HOOKS_S, on_tick)
    text = output.decode("utf-8", "replace").strip() or f"git {args[0]} failed"
    return text if ending.exit_status != 0 else ""


def is_temporary(error: str) -> bool:
    """Return whether a client's error may be temporary."""
    return bool(_TEMPORARY.search(error)) and not _LASTING.search(error)


def wait_s(number: int, first_s: float) -> float:
    """Return how long to wait before a turn is repeated for the `number`th time, in seconds."""
    return min(first_s * 2.0 ** min(number - 1, 30), _LONGEST_WAIT_S)


def wait(seconds: float, listener: Listener) -> None:
    """Wait before a turn is repeated."""
    listener.message(f"this may be temporary: the turn is repeated in {max(seconds, 0):.0f} s")
    until = time.monotonic() + seconds
    while (remaining_s := until - time.monotonic()) > 0:
        time.sleep(min(remaining_s, _TICK_S))
        listener.tick()
