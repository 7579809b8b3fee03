"""`gitgates agent-hook NAME`: what an agent's settings start, with the event on standard input.

The exit status is always 0, and standard output has what the host encodes, or nothing: to an agent,
2 would always mean "block", and any other status that the hook is broken.
"""

from __future__ import annotations

import os
import select

from gitgates.core import environ
from gitgates.hosts import AGENTS, agent_host, turn_end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_S = 2.0  # between two pieces of the payload: the host has the whole payload ready
_MOST_BYTES = 64 * 1024 * 1024


def run(args: list[str]) -> int:
    """Answer one event."""
    env = environ.read()
    if environ.is_off(env):
        _answer_switched_off(args[0] if args else "", env)
        return 0
    if not args or args[0] not in AGENTS:
        _say(f"`agent-hook` requires the name of an agent: {', '.join(AGENTS)}")
        return 0
    try:
        raw = _read_payload()
        if len(raw) >= _MOST_BYTES:
            _say(f"the payload is larger than {_MOST_BYTES >> 20} MiB; nothing was checked")
            return 0
        if _is_answered_elsewhere(args[0], env):
            return 0
        _install_in_cloud(args[0], raw, env)
        from gitgates.drivers.agent import respond  # not needed if gitgates is switched off

        _write(1, respond(raw, env, _say, args[0]))
    except KeyboardInterrupt:
        _say("interrupted; no decision was made")
    except BaseException as error:  # noqa: BLE001 - whatever it is, the agent must go on
        _say(f"internal error; please report this bug: {error!r}")
    return 0


def _install_in_cloud(agent: str, raw: bytes, env: Mapping[str, str]) -> None:
    """Install git hooks when a session begins in the vendor's cloud, if `cloud_hooks` is set."""
    host = agent_host(agent)
    is_in_cloud = env.get(host.ENVIRONMENT.cloud) == "true"
    if is_in_cloud and host.own_event("session-start").encode() in raw:
        from gitgates.setup.install.selection import install_in_cloud  # once in such a session

        install_in_cloud(env.get(host.ENVIRONMENT.project, ""), env, _say)


def _is_answered_elsewhere(agent: str, env: Mapping[str, str]) -> bool:
    """Return whether another agent started this hook, and has our hooks in its own settings."""
    for other, sign, own_sign in agent_host(agent).SETTINGS.run_by:
        if env.get(sign) and not env.get(own_sign):
            from gitgates.drivers.installed import is_installed  # seldom needed

            return is_installed(other, env)
    return False


def _answer_switched_off(host: str, env: Mapping[str, str]) -> None:
    """Tell the person once per session that required gates are switched off."""
    try:
        raw = _read_payload()
        if host not in AGENTS or turn_end_of(host) not in raw:
            return
        from gitgates.drivers.told_once import (
            answer_switched_off,
        )  # only needed at the end of a turn

        _write(1, answer_switched_off(raw, env, _say, host))
    except BaseException as error:  # noqa: BLE001 - it is switched off
        _say(f"internal error; please report this bug: {error!r}")


def _read_payload() -> bytes:
    parts: list[bytes] = []
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    while poll.poll(_LONGEST_S * 1000) and sum(map(len, parts)) < _MOST_BYTES:
        data = os.read(0, 1 << 16)
        if not data:
            break
        parts.append(data)
    return b"".join(parts)


def _say(text: str) -> None:
    from gitgates.core.clean import visible  # only needed for errors

    text = visible(text.removeprefix("gitgates: "))
    _write(2, f"gitgates: {text}\n".encode("utf-8", "replace"))


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return  # nobody listens
