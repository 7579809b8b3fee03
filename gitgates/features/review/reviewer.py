"""The strict form of reviews: its prompts, and the reviewer's start, tools and end.

It comes before gates: they need not run if the reviewer is refused a tool, or sent back.
"""

from __future__ import annotations

import os

from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.features.review.config import (
    REVIEWER,
    is_asked,
    is_review_on,
    is_reviewer,
    is_strict_possible,
    review_needs,
    reviews,
    settings_of,
)
from gitgates.features.review.facts import (
    ReviewBeganEntry,
    ReviewerChangedEntry,
    ReviewOffEntry,
    ReviewOnEntry,
    TokenEntry,
)
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.journal.entries import RoundEntry
from gitgates.journal.journal import is_a, of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.core.agent_types import ToolKind
    from gitgates.core.policy import WantedAgent
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.store.log import Fact

ON, OFF = "on", "off"
_STOP = ":stop"
_TOKEN_BYTES = 16
_MASK = "…"  # what stands for a token in a text that is kept
_TOOLS = ("__review_status", "__post_review")  # from `gitgates mcp`
_WATCHED = "reviewer "  # precedes the path of a file that defines the reviewer
_MOST_SENT_BACK = 2  # times, for a reviewer that ends without a decision
# What output may be passed on to, and what shows where one is. None has an option that writes.
_FILTERS = ("head", "tail", "wc", "cat", "grep", "cut", "nl", "cd", "ls", "pwd", "echo")
# Options of git itself that change nothing about what is read.
_QUIET = ("--no-pager", "-P")
# Options that write a file, or start a program.
_WRITING = {"git": ("--output", "--ext-diff", "--textconv"), "gitgates": ("--output",)}
_SHORTEST = len("--ou")  # git takes the beginning of an option for the whole
_TEXT = "--text"  # an option of its own, which writes nothing
# A plain line of commands: nothing in it has a meaning for the shell but quotes and joints.
_TOKEN = (
    r"[ \t]+(?:\\\n)?|(?P<joint>&&|\|\||[|;\n])"
    r"|(?:[12&]?>/dev/null|2>&1)(?=[\s;&|]|$)"
    r"""|(?P<word>(?:'[^']*'|"[^"\\$`]*"|[\^@]\{[\w-]*\}|[\w./:,=@%+^~-])+)"""
)
_QUOTED = r"'([^']*)'|\"([^\"]*)\""
_SCHEDULED = (
    "gitgates: a prompt scheduled by the agent starts with `{}`, which only counts in your own "
    "prompts. If it is yours, rephrase it and submit it again"
)


needs = review_needs
follows_writers = is_review_on


def agents(config: Config) -> tuple[WantedAgent, ...]:
    """Return the reviewer."""
    if not (is_review_on(config) and is_asked(config)):
        return ()
    from gitgates.core.policy import WantedAgent  # only to install it, or to look for it

    review = settings_of(config)
    reviewer = WantedAgent(
        name=review.reviewer,
        model=review.reviewer_model,
        setting="[tool.gitgates.review] reviewer",
        is_needed=is_strict_possible(config),
        is_required=review.mode == "require",
    )
    return (reviewer,)


def watched_files(call: Call) -> dict[str, str]:
    """Return the files that may define the reviewer, whose changes are reported to the person."""
    config = call.written_config or call.config
    return reviewer_files(config, call.repo.root_abs, call.env, call.payload.host)


def unapproved(_call: Call, changed: list[str]) -> list[str]:
    """Return the messages for the person about changed files that define the reviewer."""
    paths = [name.removeprefix(_WATCHED) for name in changed if name.startswith(_WATCHED)]
    if not paths:
        return []
    from gitgates.core.clean import plain_line  # rarely needed

    return [
        f"{plain_line(path)} has changed since this session began, so COMPLETE from this reviewer "
        "does not count"
        for path in paths
    ]


def is_another_reviewer(facts: Iterable[Fact], files: Mapping[str, str]) -> bool:
    """Return whether the files that define the reviewer have changed in a session.

    `facts`: the session's journal; `files`: the result of `reviewer_files`.
    """
    from gitgates.drivers.tampering import digest_of_file, digests_in

    now = {name: digest_of_file(path_abs) for name, path_abs in files.items()}
    for fact in facts:
        if is_a(fact, ReviewerChangedEntry):
            return True
        digests = digests_in(fact)
        then = {name: digests[name] for name in digests if name.startswith(_WATCHED)}
        if then and then != now:
            return True
    return False


def reviewer_files(
    config: Config, root_abs: str, env: Mapping[str, str], agent: str
) -> dict[str, str]:
    """Return the files that may define the reviewer, as name → path, to be watched."""
    host = agent_host(agent or DEFAULT_AGENT)
    folders = (f"{root_abs}/{host.FILES.folder}", host.home(env))
    names = [reviewer.name.rpartition(":")[2] for reviewer in agents(config)]
    paths = [path for name in names for path in host.agent_files(name, folders)]
    return {f"{_WATCHED}{path}": path for path in paths}


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Switch the strict form; give the reviewer its token, restrict its tools, send it back."""
    payload, review = call.payload, settings_of(call.config)
    verdict: Verdict | None = None
    match payload.kind:
        case "prompt" if switch := switch_in(payload.prompt.text, review.prefix):
            verdict = _switch_strict(call, on=switch == ON)
        case "before-tool" if is_reviewer(review, payload.agent.type):
            verdict = _restrict_tools(call)
        case "subagent-start" if reviews(review, payload):
            verdict = _begin(call)
        case "subagent-end" if is_reviewer(review, payload.agent.type):
            verdict = _end(call)
    return so_far.joined(verdict) if verdict else so_far


def switch_in(prompt: str, prefix: str) -> str:
    """Return how a prompt switches the strict form: `on`, `off`, or empty.

    The prefix counts only at the start, in upper or lower case, before white space or the end.
    """
    words = prompt.casefold().split(maxsplit=1)
    if not (words and prefix):
        return ""
    return {prefix.casefold(): ON, (prefix + _STOP).casefold(): OFF}.get(words[0], "")


def _switch_strict(call: Call, *, on: bool) -> Verdict:
    """Switch the strict form, and record it at once: a snapshot may take too long."""
    from gitgates.features.review.text import installed, strict_began

    review, payload = settings_of(call.config), call.payload
    if payload.prompt.automatic:
        return Verdict(WARN, to_person=_SCHEDULED.format(review.prefix))
    call.record(ReviewOnEntry() if on else ReviewOffEntry())
    host = agent_host(payload.host or DEFAULT_AGENT)
    to_agent = ""
    if not on and review.mode == "require":
        text = "this repository always requires an independent review; prompts cannot change that"
    elif not on:
        text = "the request for an independent review was cancelled"
        to_agent = "The person cancelled the request for an independent review."
    elif not host.PROTOCOL.hands_tokens:
        text = (
            f"{host.TITLE} cannot tell an independent reviewer from the agent; any review is "
            "accepted instead"
        )
    else:
        text = (
            f"an independent review is required: work ends when `{review.reviewer}` has posted "
            f"COMPLETE. To cancel, start a prompt with {review.prefix}{_STOP}."
        )
        agents, _skills = installed(review, call.repo.root_abs, call.env, payload.host)
        to_agent = strict_began(review, agents)
    return Verdict(WARN, to_agent=to_agent, to_person=f"gitgates: {text}")


def _begin(call: Call) -> Verdict:
    """Record the content that a review will see, and give the reviewer its token once."""
    agent, now = call.payload.agent.id, call.point
    began = ReviewBeganEntry(agent, now.tree, now.head)
    has_token = any(fact.get("key") == call.key for fact in of_kind(call.entries, TokenEntry))
    if not agent or has_token or not _is_strict_reviewer(call):
        return Verdict(entries=(began,))
    from gitgates.features.review.text import reviewer_task

    review = settings_of(call.config)
    changed: tuple[ReviewerChangedEntry, ...] = ()
    files = reviewer_files(call.config, call.repo.root_abs, call.env, call.payload.host)
    if is_another_reviewer(call.entries, files):
        changed = (ReviewerChangedEntry(),)  # even if it is restored before it posts
    token, token_entry = _new_token(agent, call.key)
    text = reviewer_task(review, token)
    return Verdict(WARN, to_agent=text, entries=(*changed, began, token_entry))


def _is_strict_reviewer(call: Call) -> bool:
    """Return whether a sub-agent is the reviewer for the strict form."""
    from gitgates.features.review.facts import is_strict

    return is_reviewer(settings_of(call.config), call.payload.agent.type) and is_strict(call)


def _restrict_tools(call: Call) -> Verdict | None:
    """Deny tools that the reviewer may not use before its decision."""
    if not _is_strict_reviewer(call):
        return None
    payload = call.payload
    allowed = settings_of(call.config).reviewer_commands
    refused = refuse_tool(payload.tool.kind, payload.tool.name, payload.tool.command, allowed)
    return Verdict(BLOCK, to_agent=refused, final=True) if refused else None


def refuse_tool(kind: ToolKind, tool: str, command: str, allowed: tuple[str, ...]) -> str:
    """Return why the reviewer may not use a tool; empty if it may."""
    if kind == "reads" or (kind == "ours" and tool.endswith(_TOOLS)):
        return ""
    if kind != "shell":
        return f"The reviewer may only read: it may not use {tool or 'this tool'}."
    return _refuse_line(command, allowed)


def _refuse_line(command: str, allowed: tuple[str, ...]) -> str:
    """Return why the reviewer may not run a shell command; empty if it may."""
    commands = split_commands(command)
    if commands is None:
        return (
            "The reviewer may run only plain commands: no substitutions, no variables, no files "
            "written, nothing in the background. Put text with other characters in single quotes."
        )
    return next((why for words in commands if (why := _refuse_command(words, allowed))), "")


def _refuse_command(words: list[str], allowed: tuple[str, ...]) -> str:
    if words[0] in _FILTERS:
        return ""
    words = _without_quiet(words)
    if not any(words[: len(prefix)] == prefix for prefix in map(str.split, allowed)):
        permitted = ", ".join(f"`{prefix}`" for prefix in allowed) or "none"
        rest = ", ".join(_FILTERS)
        command = " ".join(words[:2])
        return f"The reviewer may not run `{command}`. It may run: {permitted}; and {rest}."
    if any(_may_write(words[0], word.partition("=")[0]) for word in words[1:]):
        return f"The reviewer may not use {words[0]} to write a file or start a program."
    return ""


def _without_quiet(words: list[str]) -> list[str]:
    """Return a git command without options of folder and display."""
    while words[0] == "git" and words[1:2]:
        if words[1] in _QUIET:
            words = [words[0], *words[2:]]
        elif words[1] == "-C" and len(words) > len(("git", "-C", ".")):
            words = [words[0], *words[3:]]
        else:
            break
    return words


def _may_write(program: str, option: str) -> bool:
    if program == "gitgates" and option.startswith("-o"):
        return True
    is_known = any(
        writing_option.startswith(option) for writing_option in _WRITING.get(program, ())
    )
    return is_known and len(option) >= _SHORTEST and option != _TEXT


def split_commands(text: str) -> list[list[str]] | None:
    """Return the words of each command of a shell line; None if it is not plain.

    Commands may be joined by `&&`, `||`, `;`, `|` and line ends, and their output thrown away.
    """
    import re  # few tools are the reviewer's

    commands: list[list[str]] = [[]]
    at = 0
    while match := re.compile(_TOKEN).match(text, at):
        at = match.end()
        if match["joint"]:
            commands.append([])
        elif word := match["word"]:
            commands[-1].append(re.sub(_QUOTED, r"\1\2", word))
    return [words for words in commands if words] if at == len(text) else None


def _end(call: Call) -> Verdict | None:
    """Send back a reviewer that ends without a decision; None if the strict form is off."""
    agent = call.payload.agent.id
    if not agent or not _is_strict_reviewer(call):
        return None
    from gitgates.features.review.change import SessionChange
    from gitgates.features.review.facts import DECISION

    change = SessionChange(call)
    decisions = [
        marker
        for marker in change.evidence.decisions
        if (marker.how, marker.agent) == (DECISION, agent)
    ]
    if decisions and change.is_of_now(decisions[-1]):
        return Verdict(final=True)
    times = change.evidence.sent_back.get(agent, 0)
    is_last = times >= _MOST_SENT_BACK
    outcome = "breaker" if is_last else "blocked"
    entry = call.round(REVIEWER, outcome, prompt="", tree=call.point.tree)
    if not is_last:
        return _send_back(call, entry, was_posted=bool(decisions))
    text = (
        f"gitgates: review: `{call.payload.agent.type}` ended without a decision on the "
        f"current change, although it was sent back {times} times"
    )
    return Verdict(WARN, to_person=text, entries=(entry,), final=True)


def _send_back(call: Call, entry: RoundEntry, *, was_posted: bool) -> Verdict:
    from gitgates.features.review.text import sent_back

    why = "You have not posted a decision yet, so you cannot end."
    if was_posted:
        why = "You posted your decision, but the change is different now."
    token, token_entry = _new_token(call.payload.agent.id, "")
    # The answer stored for a second delivery does not contain the token.
    masked = call.encode(Verdict(BLOCK, to_agent=sent_back(_MASK, why)))
    entries = (entry._replace(answer=masked), token_entry)
    return Verdict(BLOCK, to_agent=sent_back(token, why), entries=entries, final=True)


def repeat(call: Call, answer: str) -> Verdict | None:
    """Return a repeated answer with a new token instead of the mask."""
    import json

    text = json.loads(answer or "{}").get("reason", "")
    if _MASK not in text:
        return None
    token, token_entry = _new_token(call.payload.agent.id, "")
    again = text.replace(f"--token {_MASK}", f"--token {token}")
    return Verdict(BLOCK, to_agent=again, entries=(token_entry,))


def _new_token(agent: str, key: str) -> tuple[str, TokenEntry]:
    """Return a reviewer's new token, and its journal entry. `key`: the event's."""
    from gitgates.drivers.shell_commands import digest_of  # few events need it

    token = os.urandom(_TOKEN_BYTES).hex()
    return token, TokenEntry(agent, digest_of(token), key)
