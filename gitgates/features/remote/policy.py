"""Provide the cache of verdicts, and the server that gates may run on."""

from __future__ import annotations

from gitgates.core.environ import is_ci
from gitgates.features.remote.verdict_cache import Server, VerdictCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.core.types import Config, Gate
    from gitgates.features.remote.gates import RemoteGates
    from gitgates.git.repo import Repo


def verdict_cache(
    repo: Repo, config: Config, say: Callable[[str], None], *, remembers: bool = True
) -> VerdictCache:
    """Return the cache for one run; without `verdicts`, it has nothing and writes nothing."""
    table = config.tables["remote"]
    return VerdictCache(
        Server.of_table(table, repo.root_abs, repo.env),
        repo.env,
        writes=table["write"] == "always" or (table["write"] == "ci" and is_ci(repo.env)),
        down_abs=f"{repo.shared_state_abs}/cache-down" if remembers else "",
        say=say,
    )


def remote_execution(repo: Repo, config: Config) -> RemoteGates | None:
    """Return what runs gates on a server; None without `execution`."""
    if not config.tables["remote"]["execution"]:
        return None
    from gitgates.features.remote.gates import RemoteGates  # not needed with a cache alone

    return RemoteGates(repo, config)


def sent_inputs(repo: Repo, config: Config, gate: Gate) -> tuple[dict[str, Any], str]:
    """Return what a gate would send to another machine, as a document and as text."""
    from gitgates.features.remote import sent  # for `explain --remote` only

    document = sent.sent_inputs(repo, config, gate)
    return document, sent.sent_text(document)
