"""The pages about coding agents: what works, as tests show, and the answer to each event."""

from __future__ import annotations

import json

from abilities import ABILITIES  # what the tests with real clients hold
from markdown_page import page, table

from gitgates.core.agent_types import Payload
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.types import BLOCK, STOP, WARN, Verdict
from gitgates.hosts import AGENTS, GUESTS, agent_host, agent_settings
from gitgates.hosts.capabilities import express

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Level

_BESIDE = ("reason", "stopReason", "permissionDecisionReason", "hookEventName", "user_message")
_ALL_ABILITIES = tuple(dict.fromkeys(one for can in ABILITIES.values() for one in can))


def hosts_page() -> str:
    """Return the page about coding agents."""
    return page(
        "Coding agents",
        "`gitgates/hosts/` (each verdict at each event, encoded) and `tests/client/abilities.py`",
        "One configuration works for all agents. Its events and tools have the names that Claude "
        "Code gives them (`Stop`, `Edit`, `Bash`); patterns may also use an agent's own names. "
        "`gitgates install-hooks --agent NAME` writes the hooks into the settings of an agent. "
        "[How hooks of agents work](../how-to/agent-hooks.md).",
        table(
            ("agent", "NAME", "project settings", "user settings", "witness"),
            (_host_row(agent) for agent in (*AGENTS, *GUESTS)),
        ),
        "Witness: what shows that this is so. `client`: its payloads were recorded from that "
        "version, which our tests drive. `document`: its payloads and answers are those of a "
        "document, or of its source; no client was driven. VS Code has no settings of its own: it "
        "runs the hooks of Copilot CLI and Claude Code.",
        "## What works",
        "Results of our tests with the real clients. `make e2e` tests Claude Code, with which "
        "everything works, and Codex; `make e2e HOSTS=all` tests all of them, and "
        "`make e2e HOSTS=NAME` one. `yes`: the tool was denied, the agent was told, or its stop "
        "was blocked and allowed later.",
        *_abilities(),
        "The site (`make site`) lists, for each agent, the fields of its answers, and what "
        "disables all of its hooks.",
    )


def _abilities() -> tuple[str, str]:
    """Return the table of what works in each agent, and the reasons for what does not."""
    notes: dict[str, int] = {}
    rows = [
        (agent_host(agent).TITLE, *(_ability(can.get(one, ""), notes) for one in _ALL_ABILITIES))
        for agent, can in ABILITIES.items()
        if agent in AGENTS
    ]
    reasons = "\n".join(f"{number}. {why[:1].upper()}{why[1:]}." for why, number in notes.items())
    return table(("agent", *_ALL_ABILITIES), rows), reasons


def _ability(seen: str, notes: dict[str, int]) -> str:
    """Return a cell: whether it works, with the number of the note that says why not."""
    result, _, why = seen.partition(": ")
    if not why:
        return "yes" if seen else ""
    return f"{result} ({notes.setdefault(why, len(notes) + 1)})"


def answers_page() -> str:
    """Return the page about what each agent receives for each verdict."""
    return page(
        "Answers to agents",
        "`gitgates/hosts/` (each verdict at each event, encoded)",
        "What an agent receives for each verdict. If an event has a field for it, the text is for "
        "the agent (`additionalContext`, or the reason of a decision), otherwise for the person "
        "(`systemMessage`, which not every client shows). `as warn`, `as block`: the event cannot "
        "express more.",
        *(text for agent in (*AGENTS, *GUESTS) for text in _answers(agent)),
    )


def _host_row(agent: str) -> tuple[str, ...]:
    host = agent_host(agent)
    files = host.settings_files("", {"HOME": "/~"})
    own, project = (files.get(scope, "").lstrip("/") for scope in ("user", "project"))
    witness = f"client: {host.TESTED}" if host.TESTED else f"document: {host.DOCUMENT}"
    name = f"`{agent}`" if agent in AGENTS else ""
    return (host.TITLE, name, _code(project), _code(own), witness)


def _answers(agent: str) -> list[str]:
    host = agent_host(agent)
    rows = []
    for event, (kind, can) in host.PROTOCOL.events.items():
        payload = Payload(host=agent, event=HOOK_OF[kind], kind=kind, can=can)
        said = [_answer(payload, level) for level in (WARN, BLOCK, STOP)]
        own = f" (`{event}`)" if event != HOOK_OF[kind] else ""
        rows.append((f"`{HOOK_OF[kind]}`{own}", *said))
    notes = [f"- {HOOK_OF[kind]}: {why}" for kind, why in host.PROTOCOL.cannot.items()]
    notes += [f"- Hooks of git: {host.NO_GIT_HOOKS}"] if host.NO_GIT_HOOKS else []
    settings = agent_settings(agent)
    whose = " of a project" if settings.FREE else ""
    notes += [f"- Before it runs the hooks{whose}: {settings.TRUST}"] if settings.TRUST else []
    if switches := _switches(agent):
        notes.append(f"- Disables all hooks, and is refused by the guard: {switches}")
    for most_s in dict.fromkeys(host.SETTINGS.times.most_s.values()):
        names = ", ".join(
            HOOK_OF[kind] for kind, most in host.SETTINGS.times.most_s.items() if most == most_s
        )
        notes.append(f"- Time limit of {most_s} s: {names}")
    answers = table(("event", "warn", "block", "stop"), rows)
    return [f"## {host.TITLE}", answers, *(["\n".join(notes)] if notes else [])]


def _switches(agent: str) -> str:
    """Return what disables all hooks of an agent."""
    host = agent_host(agent)
    keys = [f"{_code(key)} {host.OFF.value}" for key in (host.OFF.key, *host.OFF.former) if key]
    words = [_code(" ".join(row).strip()) for row in host.OFF.words if all(row)]
    variables = [_code(name) for name in host.OFF.variables]
    return ", ".join((*keys, *words, *variables))


def _answer(payload: Payload, level: Level) -> str:
    """Return the fields of an answer that express a verdict."""
    told, _why = express(payload, level)
    if told != level:
        return "as warn" if told == WARN else "as block"
    host = agent_host(payload.host)
    answer = json.loads(host.encode(payload, Verdict(level, "TEXT", "NOTE")) or b"{}")
    inside = answer.pop("hookSpecificOutput", {})
    found = [
        f"`{key}: {value}`".replace("False", "false")
        if value in ("deny", "block", False)
        else f"`{key}`"
        for key, value in (answer | inside).items()
        if key not in (*_BESIDE, host.PROTOCOL.answers.person)
    ]
    return ", ".join(found) or (
        f"`{host.PROTOCOL.answers.person}`" if host.PROTOCOL.answers.person in answer else ""
    )


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
