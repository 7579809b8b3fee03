"""A coding agent that there is not, in one file: no real one has its words or its format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gitgates.core.agent_types import Channels, Payload, Prompt, ToolUse
from gitgates.core.lifecycle import HOOK_OF, HOOK_POINTS
from gitgates.core.types import BLOCK
from gitgates.hosts.agent import (
    AgentHost,
    BadPayload,
    DisableSwitch,
    Environment,
    Files,
    Protocol,
    SettingsFormat,
    Tools,
)
from gitgates.hosts.capabilities import express, reaches_agent
from gitgates.hosts.settings.base import Entry, HookSettings, InstalledHook, is_our_command
from gitgates.hosts.settings.json_settings import AgentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Verdict


class Toy(AgentHost):
    """The protocol is not valid JSON; a host with that has less to say."""

    NAME = "toy"
    TITLE = "The Toy"
    ENVIRONMENT = Environment(
        secrets=("TOY_SECRET",),
        of_a_session=("TOY_SESSION",),
        project="TOY_ROOT",
    )
    PROTOCOL = Protocol(
        events={
            "hello": ("session-start", Channels(context=True)),
            "asked": ("prompt", Channels(block=True, context=True, reason_to_person=True)),
            "about-to": ("before-tool", Channels(deny=True)),
            "done": ("turn-end", Channels(block=True)),
        },
        provable=("turn-end", "prompt", "before-tool"),
    )
    TOOLS = Tools(names={"writes": ("type",), "reads": ("look",), "shell": ("sh",)})
    FILES = Files(
        folder=".toy",
        settings={"project": "settings", "user": "settings"},
    )
    SETTINGS = SettingsFormat(module=__name__)
    OFF = DisableSwitch(key="silent")

    def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
        """Read `event conversation folder [tool file]`, separated by tabs."""
        fields = data.decode().rstrip("\n").split("\t")
        if len(fields) not in {3, 5}:
            raise BadPayload(f"{len(fields)} fields")
        event, session, folder, tool, file = [*fields, "", ""][:5]
        kind, can = self.PROTOCOL.events.get(event, ("", Channels()))
        return Payload(
            host=self.NAME,
            event=HOOK_OF.get(kind, event),
            kind=kind,
            can=can,
            session=session,
            cwd_abs=folder,
            project_abs=env.get("TOY_ROOT", ""),
            prompt=Prompt(id="1"),
            tool=ToolUse(
                name=tool,
                kind=self.tools.get(tool, "other" if tool else ""),
                id=f"{tool} {file}" if tool else "",
                paths=(file,) if file else (),
            ),
        )

    def encode(self, payload: Payload, verdict: Verdict) -> bytes:
        """Say `no: REASON`, or what is to be known."""
        if verdict.replayed_answer is not None:
            return verdict.replayed_answer.encode("ascii")
        level, _why = express(payload, verdict.level)
        text = (verdict.to_agent or verdict.to_person).encode("ascii", "replace")
        if level >= BLOCK:
            return b"no: " + text
        return b"know: " + text if text and reaches_agent(payload.can, level) else b""

    def is_block(self, _exit_status: int | None, stdout: bytes) -> bool:
        """Return whether it is told no."""
        return stdout.startswith(b"no: ")


HOST = Toy()
_LINE = re.compile(r"([a-z-]+)(?: ([^:]+))?: (.+) \((\d+) s\)\r?\n")


class Settings(AgentSettings):
    """Lines such as `done: COMMAND (75 s)`, `about-to type|look: COMMAND (5 s)`, `silent`."""

    def add(self, text: str | None, wanted: tuple[Entry, ...], command: str, _file: str) -> str:
        """Return the text with a line for each event, before all else."""
        lines = [
            f"{self.own_event(one.event)}{f' {one.matcher}' if one.matcher else ''}: {command} "
            f"({one.timeout_s} s)\n"
            for one in wanted
        ]
        return "".join(lines) + ("made for gitgates\n" if text is None else text)

    def remove(self, text: str, _file: str) -> str | None:
        """Return the text without our lines."""
        rest = "".join(line for line in text.splitlines(keepends=True) if not _is_ours(line))
        return None if rest == "made for gitgates\n" else rest

    def read(self, text: str, _file: str, _scope: str = "") -> HookSettings:
        """Return what the lines say."""
        found = [_LINE.fullmatch(line) for line in text.splitlines(keepends=True)]
        return HookSettings(
            off=True if "silent\n" in text else None,
            hooks=tuple(
                InstalledHook(
                    event=HOOK_OF[self.host.PROTOCOL.events[one[1]][0]],
                    command=one[3],
                    timeout_s=float(one[4]),
                    matcher=one[2],
                    is_ours=is_our_command(one[3], HOST.NAME),
                )
                for one in found
                if one
            ),
        )

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, _agents: tuple[str, ...] | None
    ) -> str | None:
        """Return names of tools."""
        return "|".join(tools) if tools and kind == "before-tool" else None

    def sample(self, event: str, root_abs: str, session: str, file: str = "") -> bytes:
        """Return a payload."""
        tool = f"\ttype\t{file}" if event == HOOK_OF["before-tool"] else ""
        own = self.host.own_event(HOOK_POINTS[event].kind)
        return f"{own}\t{session}\t{root_abs}{tool}\n".encode()


def _is_ours(line: str) -> bool:
    found = _LINE.fullmatch(line)
    return bool(found and is_our_command(found[3], HOST.NAME))
