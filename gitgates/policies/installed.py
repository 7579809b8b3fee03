"""Whether an agent has our hooks in its own settings."""

from __future__ import annotations

from gitgates.errors import GitgatesError
from gitgates.hosts import agent_host, agent_settings
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def is_installed(agent: str, env: Mapping[str, str]) -> bool:
    """Return whether one of its settings has our hooks, by the environment of a hook of it."""
    host, settings = agent_host(agent), agent_settings(agent)
    for scope, path_abs in host.settings_files(env.get(host.PROJECT, ""), env).items():
        try:
            found = settings.read(read_regular(path_abs).decode("utf-8"), path_abs, scope)
        except (OSError, UnicodeDecodeError, GitgatesError):
            continue  # the client cannot read it either
        if found.ours and not found.off:
            return True
    return False
