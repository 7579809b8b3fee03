"""Whether an agent has gitgates hooks in its own settings."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.hosts import agent_host, agent_settings
from gitgates.store.files import read_regular, read_tail

_MOST_READ = 1 << 20  # bytes of a file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def is_installed(agent: str, env: Mapping[str, str]) -> bool:
    """Return whether one of its settings has gitgates hooks, by the environment of its hook."""
    host, settings = agent_host(agent), agent_settings(agent)
    for scope, path_abs in host.settings_files(env.get(host.ENVIRONMENT.project, ""), env).items():
        try:
            hooks = settings.read(read_regular(path_abs).decode("utf-8"), path_abs, scope)
        except (OSError, UnicodeDecodeError, GitgatesError):
            continue  # the client cannot read it either
        if hooks.our_hooks and not hooks.off:
            return True
    return False


def is_switched_off(agent: str, path_abs: str) -> bool:
    """Return whether a file of an agent's settings switches all of its hooks off."""
    content = read_tail(path_abs, since=0, most=_MOST_READ) or b""
    if not agent_host(agent).may_be_off(content):
        return False
    try:
        return agent_settings(agent).is_off(content.decode("utf-8"), path_abs) is True
    except (UnicodeDecodeError, GitgatesError):
        return False  # the client cannot read it either
