"""`gitgates remote`: whether the servers of `[tool.gitgates.remote]` work."""

from __future__ import annotations

import hashlib
import secrets
import time

import click

from gitgates.config.load import load
from gitgates.core import environ, errors
from gitgates.core.types import Config, Gate, Schedule
from gitgates.features.remote.policy import verdict_cache
from gitgates.features.remote.verdict_cache import VerdictCache
from gitgates.features.remote.worker import INSTALL
from gitgates.git.repo import Repo
from gitgates.verbs.group import VerbGroup
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.remote.gates import RemoteEnd

# One key, so that many checks leave one entry.
_TEST_KEY = hashlib.sha256(b"gitgates remote check").hexdigest()
_TIMEOUT_S = 60.0
_FAILS = 3
_PATH = "/usr/local/bin:/usr/bin:/bin"
# Step, command, expected status and exit status.
_CASES = (
    ("pass", "exit 0", ("passed", 0)),
    ("fail", f"exit {_FAILS}", ("failed", _FAILS)),
    ("no start", "", ("could-not-run", 1)),
)


@click.group("remote", cls=VerbGroup)
def command() -> int:
    """Show whether the servers of `[tool.gitgates.remote]` work."""
    return errors.OK


@command.command("check")
def check() -> int:
    """Test the cache of verdicts and the server for gates, if they are configured.

    Cache: asks for a key that no server has. If this process may write there, writes a test entry,
    always under the same key, and reads it. With `write = "ci"`, this needs the variable CI:
    CI=true gitgates remote check.

    Server for gates: runs a gate that passes, one that fails and one that cannot start.

    Exit status 0: the servers work. 1: one does not, or none is configured.
    """
    repo = current_repo()
    config = load(repo.root_abs) or Config()
    table = config.tables.get("remote", {})
    works = []
    if table.get("verdicts"):
        click.echo(f"cache {table['verdicts']}")
        works.append(_reads(repo, config) and _writes(repo, config))
    if table.get("execution"):
        click.echo(f"execution {table['execution']}")
        works.append(_executes(repo, config))
    if not works:
        text = "[tool.gitgates.remote] has neither `verdicts` nor `execution`"
        click.echo(f"nothing was checked: {text}", err=True)
    return errors.OK if works and all(works) else errors.BLOCKED


def _executes(repo: Repo, config: Config) -> bool:
    began_s = time.monotonic()
    environ.set_default("GRPC_VERBOSITY", "NONE")  # else gRPC writes log lines
    try:
        return _runs_gates(repo, config)
    except (ImportError, errors.GitgatesError) as error:
        what = error.message if isinstance(error, errors.GitgatesError) else f"{INSTALL} ({error})"
        return _show("reach", what, began_s, False)


def _runs_gates(repo: Repo, config: Config) -> bool:
    """Return whether the server reports correctly how gates end.

    The gates need no file, and their results are not kept.

    Raises: GitgatesError if a file that the configuration names cannot be read; ImportError.
    """
    # gRPC may not be installed.
    from gitgates.features.remote.connection import LOOPBACK, ServerError
    from gitgates.features.remote.execution import RemoteCommand, RemoteExecution
    from gitgates.features.remote.tree import InputRoot, digest_of

    messages: list[str] = []
    server, began_s = RemoteExecution(repo, config, messages.append), time.monotonic()
    try:
        answer = server.capabilities(_TIMEOUT_S)
    except ServerError as error:
        return _show("reach", error.reason, began_s, False)
    low, high = answer.low_api_version, answer.high_api_version
    versions = f"API {low.major}.{low.minor} to {high.major}.{high.minor}, SHA-256"
    scheme, _, address = config.tables["remote"]["execution"].partition("://")
    if scheme == "grpc" and not address.startswith(LOOPBACK):
        versions += "; without TLS, so others in the network can read and change all of it"
    _show("reach", versions, began_s, True)
    root = InputRoot(digest=digest_of(b""), directories={digest_of(b""): b""}, files={})
    for step, text, expected in _CASES:
        began_s = time.monotonic()
        argv = ("/bin/sh", "-c", text) if text else ("gitgates-no-such-program",)
        gate = Gate(name=f"check of {step}", schedule=Schedule(timeout_s=_TIMEOUT_S))
        end = server.run(gate, RemoteCommand(argv, {"PATH": _PATH}), root)
        # What could not run for another reason proves nothing.
        is_ok = (end.status, end.exit_status) == expected and bool(
            text or "not found" in end.reason
        )
        if not _show(step, _what(end), began_s, is_ok):
            return False
    return True


def _what(end: RemoteEnd) -> str:
    if end.status == "could-not-run":
        return f"could not run: {end.reason}"
    return end.status + (f", exit status {end.exit_status}" if end.exit_status else "")


def _cache(repo: Repo, config: Config) -> VerdictCache:
    """Return the cache, which is asked even if it has just failed for another run."""
    return verdict_cache(repo, config, lambda _text: None, remembers=False)


def _reads(repo: Repo, config: Config) -> bool:
    began_s, cache = time.monotonic(), _cache(repo, config)
    entries = cache.get([secrets.token_hex(32)])
    cache.close()
    problem = cache.problem or ("has an entry for a key that nobody wrote" if entries else "")
    return _show("read", problem or "no entry for a new key, as expected", began_s, not problem)


def _writes(repo: Repo, config: Config) -> bool:
    began_s, cache = time.monotonic(), _cache(repo, config)
    if not cache.writes:
        write = config.tables["remote"]["write"]
        why = f'write = "{write}"' + (", and CI is not set" if write == "ci" else "")
        click.echo(f"  write    not tried: {why}")
        return True
    entry = secrets.token_hex(512).encode()
    cache.put({_TEST_KEY: entry})
    if not _show("write", cache.problem or "an entry of 1 KiB", began_s, not cache.problem):
        return False
    began_s, cache = time.monotonic(), _cache(repo, config)
    is_same = cache.get([_TEST_KEY]).get(_TEST_KEY) == entry
    cache.close()
    what = "the same entry" if is_same else cache.problem or "a different entry, or none"
    return _show("read it", what, began_s, is_same)


def _show(step: str, what: str, began_s: float, is_ok: bool) -> bool:  # noqa: FBT001 - what it returns
    took_s = time.monotonic() - began_s
    click.echo(f"  {step:8} {'ok' if is_ok else 'failed'}: {what} ({took_s:.2f} s)")
    return is_ok
