"""Whether an agent has gitgates hooks in its own settings, and which events they get."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import kind_of
from gitgates.hosts import agent_host, agent_settings
from gitgates.store.files import read_regular, read_tail

_MOST_READ = 1 << 20  # bytes of a file
_UNKNOWN_TOOL = "ToolOfAServer"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.hosts.settings.base import HookSettings


def is_installed(agent: str, env: Mapping[str, str]) -> bool:
    """Return whether one of its settings has gitgates hooks, by the environment of its hook."""
    return any(own_settings(agent, env))


def hears_writers(agent: str, root_abs: str, env: Mapping[str, str]) -> bool:
    """Return whether its hooks hear of each tool that may write, after it.

    Those of an older version, and edited ones, need not. True if none are in its settings: then
    they are those of a plugin, which has our version.
    """
    tools = agent_host(agent).TOOLS
    names = (*tools.names.get("writes", ()), _UNKNOWN_TOOL)
    matchers = [
        [hook.matcher for hook in hooks.our_hooks if kind_of(hook.event) == "after-tool"]
        for hooks in own_settings(agent, env, root_abs)
    ]
    return not matchers or any(
        all(_matches(matcher, name) for name in names) for each in matchers for matcher in each
    )


def _matches(matcher: str | None, name: str) -> bool:
    import re  # only if somebody else has changed files, too

    try:
        return matcher in (None, "", "*") or bool(re.search(f"^(?:{matcher})", name))
    except re.error:
        return True  # of a client with patterns of its own


def own_settings(agent: str, env: Mapping[str, str], root_abs: str = "") -> Iterator[HookSettings]:
    """Yield the settings that have gitgates hooks."""
    host, settings = agent_host(agent), agent_settings(agent)
    project_abs = env.get(host.ENVIRONMENT.project, "") or root_abs
    for scope, path_abs in host.settings_files(project_abs, env).items():
        try:
            hooks = settings.read(read_regular(path_abs).decode("utf-8"), path_abs, scope)
        except (OSError, UnicodeDecodeError, GitgatesError):
            continue  # the client cannot read it either
        if hooks.our_hooks and not hooks.off:
            yield hooks


def is_switched_off(agent: str, path_abs: str) -> bool:
    """Return whether a file of an agent's settings switches all of its hooks off."""
    content = read_tail(path_abs, since=0, most=_MOST_READ) or b""
    if not agent_host(agent).may_be_off(content):
        return False
    try:
        return agent_settings(agent).is_off(content.decode("utf-8"), path_abs) is True
    except (UnicodeDecodeError, GitgatesError):
        return False  # the client cannot read it either
