"""What `gitgates doctor` checks about gates with `remote`, without asking the server."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from gitgates.core.clean import counted, visible_line
from gitgates.core.types import Config
from gitgates.features.remote.gates import local_keys
from gitgates.features.remote.worker import INSTALL
from gitgates.git.repo import Repo
from gitgates.verbs.finding import Finding

_CHECK = "remote"


def check(_repo: Repo, config: Config) -> Iterator[Finding]:
    """Find why gates with `remote` always run here."""
    gates = [gate for gate in config.gates if gate.remote.allowed]
    for gate in gates:
        if keys := local_keys(gate):
            where = f"gate {visible_line(gate.name)}"
            what = f"has `remote`, but always runs here, because of `{'`, `'.join(keys)}`"
            yield Finding("note", _CHECK, where, what)
    table = config.tables.get("remote", {})
    server, total = table.get("execution", ""), counted(len(gates), "gate")
    if not server:
        if gates:
            what = f"{total} with `remote`, but no `execution`: they run here"
            yield Finding("note", _CHECK, "[tool.gitgates.remote]", what)
    elif not gates:
        yield Finding("note", _CHECK, server, "no gate has `remote`: nothing runs there")
    elif not table["jobs"]:
        yield Finding("note", _CHECK, server, "`jobs` is 0: nothing runs there")
    elif able := sum(not local_keys(gate) for gate in gates):
        yield _package_finding(server, counted(able, "gate"))


def _package_finding(server: str, total: str) -> Finding:
    """Report whether the packages are installed."""
    try:
        importlib.import_module("gitgates.features.remote.execution")
    except ImportError as error:
        what, _, mend = INSTALL.partition(": ")
        return Finding("problem", _CHECK, server, f"{what} ({error}): nothing runs there", mend)
    what = f"{total} may run there; `gitgates remote check` asks the server"
    return Finding("ok", _CHECK, server, what)
