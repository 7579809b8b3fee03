"""Check that a server of the Remote Execution API says correctly how gates end."""

from __future__ import annotations

import time

from gitgates.core.types import Gate
from gitgates.features.remote.connection import LOOPBACK, ServerError
from gitgates.features.remote.execution import RemoteCommand, RemoteExecution
from gitgates.features.remote.tree import InputRoot, digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.core.types import Config
    from gitgates.features.remote.gates import RemoteEnd
    from gitgates.git.repo import Repo

_TIMEOUT_S = 60.0
_FAILS = 3
_PATH = "/usr/local/bin:/usr/bin:/bin"
# Step, command, expected status and exit status.
_CASES = (
    ("pass", "exit 0", ("passed", 0)),
    ("fail", f"exit {_FAILS}", ("failed", _FAILS)),
    ("no start", "", ("could-not-run", 1)),
)


def checked(repo: Repo, config: Config, show: Callable[[str, str, float, bool], bool]) -> bool:
    """Return whether the server is of use.

    `show` gets a step, what was found, when the step began, and whether that is ok. The gates need
    no file, and their results are not kept.

    Raises: GitgatesError for a file of the configuration that cannot be read.
    """
    messages: list[str] = []
    server, began_s = RemoteExecution(repo, config, messages.append), time.monotonic()
    try:
        answer = server.capabilities(_TIMEOUT_S)
    except ServerError as error:
        return show("reach", error.reason, began_s, False)
    low, high = answer.low_api_version, answer.high_api_version
    versions = f"API {low.major}.{low.minor} to {high.major}.{high.minor}, SHA-256"
    scheme, _, address = config.tables["remote"]["execution"].partition("://")
    if scheme == "grpc" and not address.startswith(LOOPBACK):
        versions += "; without TLS, so others in the network can read and change all of it"
    show("reach", versions, began_s, True)
    root = InputRoot(digest=digest_of(b""), directories={digest_of(b""): b""}, files={})
    for step, text, expected in _CASES:
        began_s = time.monotonic()
        argv = ("/bin/sh", "-c", text) if text else ("gitgates-no-such-program",)
        gate = Gate(name=f"check of {step}", timeout_s=_TIMEOUT_S)
        end = server.run(gate, RemoteCommand(argv, {"PATH": _PATH}), root)
        # What could not run for another reason proves nothing.
        is_ok = (end.status, end.exit_status) == expected and bool(
            text or "not found" in end.reason
        )
        if not show(step, _what(end), began_s, is_ok):
            return False
    return True


def _what(end: RemoteEnd) -> str:
    if end.status == "could-not-run":
        return f"could not run: {end.reason}"
    return end.status + (f", exit status {end.exit_status}" if end.exit_status else "")
