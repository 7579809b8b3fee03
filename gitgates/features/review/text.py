"""Texts about reviews for agents and the person. Cold and pure.

The host adds its own words in front ("Stop hook feedback:"), so the texts begin with the facts.
"""

from __future__ import annotations

import os
from shlex import quote

from gitgates.core.clean import plain_line
from gitgates.core.record import Record
from gitgates.engine.plan.hooks import matches_agent
from gitgates.features.review.facts import ISSUES
from gitgates.hosts import DEFAULT_AGENT, agent_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.features.review.change import SessionChange
    from gitgates.features.review.config import Review


# Why an agent is blocked.
NOT_REVIEWED = "not-reviewed"
NO_DECISION = "no-decision"
STALE = "stale"
OPEN_ISSUES = "issues"

_SHOWN = 6
_LONGEST_MESSAGE = 6000
MOST_BLOCKS = 3  # for one review in a prompt, without a new marker or decision
_ORDINALS = {2: "second", 3: "third"}
_HEADING = "## What to do now"
_HOW = {
    "skill": "the skill `{}`",
    "command": "the command `/{}`",
    "agent": "the sub-agent `{}`",
    "findings": "a report of findings",
    "done": "`gitgates review done`",
    "skip": "`gitgates review skip`",
    "decision": "the reviewer's {}",
}
_REMINDED = (
    "review: after a significant change, have it reviewed by a review skill or the sub-agent "
    "{reviewer}. If no review is needed, say why: gitgates"
    ' review skip --reason "why".'
)
_REQUIRED = (
    "review: have the sub-agent {reviewer} review every change, in the foreground, until it "
    "posts COMPLETE."
)
_ASKED = " If a prompt starts with {prefix}, {reviewer} must post COMPLETE."
_LONGEST_NAME = 41


class ReviewRequest(Record):
    """The facts for a review request."""

    change: SessionChange
    why: str  # one of the constants above
    message: str = ""  # the reviewer's last message
    root_abs: str = ""  # where the change is, if the agent is elsewhere
    # Those configured and installed, by the client's names.
    agents: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    number: int = 1  # how often this has been requested, including now


def describe_evidence(how: str, name: str) -> str:
    """Describe a review's evidence."""
    return _HOW.get(how, "`{}`").format(plain_line(name or how))


def weakened(line: str) -> str:
    """Return what an agent is told about changes that weaken the checks."""
    return (
        f"Your changes weaken the checks: {line}. Undo what nobody asked for; for the rest, give "
        "the reason in your report. `gitgates review status` lists all of them."
    )


def reminder(request: ReviewRequest) -> str:
    """Return the request that an agent have its change reviewed."""
    weight = request.change.weight
    cd = f"cd {quote(request.root_abs)} && " if request.root_abs else ""
    if weight.significant:
        head = (
            "This session's changes are large enough to need a review, and there is no "
            f"evidence of one: {weight.why}."
        )
    else:
        head = (
            "This session's changes weaken the checks, so they need a review, and there is no "
            "evidence of one."
        )
    lines = [head, *_change(request)]
    for status in request.change.standings[:1]:
        how = describe_evidence(status.marker.how, status.marker.name)
        lines += ["", f"The last review ({how}) no longer covers it: {status.why}."]
    ways = []  # our own first
    if request.agents:
        ways.append(f"- start a sub-agent of the type {_either(request.agents)}, and wait for it")
    if request.skills:
        ways.append(f"- use the skill {_either(request.skills)}")
    how = ", in one of these ways" if ways else ""
    have = f"Have the change reviewed{_location(request)}{how}, then end your turn again:"
    rest = (
        f"- review it yourself: read all of `{cd}gitgates review diff` as if somebody else had "
        f'written it, then `{cd}gitgates review done --summary "what you looked at, and what you '
        'found"`\n'
        "Fix what the review finds. Later changes need another review only if they are "
        "significant again.\n"
        "If this change needs no review, say why instead; this is recorded and reported to the "
        f'person: `{cd}gitgates review skip --reason "…"`'
    )
    return "\n".join([*lines, "", _HEADING, have, *ways, rest, *_count(request)])


def _count(request: ReviewRequest) -> list[str]:
    """Return a line with this request's number, unless it is the first."""
    ordinal = _ORDINALS.get(request.number)
    end = " After that, you may stop, and the person is told why."
    last = end if request.number >= MOST_BLOCKS else ""
    return [f"This is the {ordinal} request.{last}"] if ordinal else []


def strict(request: ReviewRequest) -> str:
    """Return the strict form's request to an agent."""
    head = "The person asked for an independent review: "
    review, decision = request.change.review, request.change.decision
    if review.mode == "require":
        head = "Work here ends with an independent review: "
    lines = [head + _missing(request)]
    if request.why == OPEN_ISSUES:
        fix = (
            "Fix what it found or, if it is wrong, say so where the reviewer sees it, such as in "
            "a comment. Then have it review again:"
        )
        lines += ["", *_reviewer_message(request), "", _HEADING, fix]
    else:
        has_issues = decision is not None and decision.name == ISSUES
        lines += [*_change(request), *(_reviewer_message(request) if has_issues else ())]
        lines += ["", _HEADING]
    client_name = find_reviewer(review, request.agents)
    start = (
        f"Start the sub-agent {_reviewer(review, client_name)} and wait for it (with the "
        "Agent tool, run_in_background: false). Ask it to review this session's change"
        f"{_location(request)}. Do not give it your own verdict: it reads the person's prompts and "
        "the change itself. It posts its own decision; one that you post does not count."
    )
    if not client_name:
        start += (
            " If there is no such sub-agent, tell the person that `gitgates install-hooks "
            "--agent claude` creates it."
        )
    then = "When it has posted COMPLETE, end your turn. When it has posted ISSUES, fix them first."
    return "\n".join([*lines, start, then, *_count(request)])


def _reviewer(review: Review, client_name: str) -> str:
    """Return the reviewer's name, with a plugin's prefix."""
    name = client_name or review.reviewer
    is_certain = client_name or ":" in name
    return f"`{name}`" if is_certain else f"`{name}` (from the plugin: `gitgates:{name}`)"


def _missing(request: ReviewRequest) -> str:
    name, why = f"`{request.change.review.reviewer}`", _cap(request.change.weight.why)
    decision = request.change.decision
    if request.why == STALE and decision:
        return f"{name} decided {decision.name} on older content, which has changed since. {why}."
    if request.why == OPEN_ISSUES:
        return f"{name} found issues in this change."
    return f"{name} has not decided on this change yet. {why}."


def _reviewer_message(request: ReviewRequest) -> list[str]:
    text = request.message.strip()
    if not text:
        return []
    if len(text) > _LONGEST_MESSAGE:
        text = text[:_LONGEST_MESSAGE] + " […]"
    return ["What the reviewer said:", *(f"> {line}" for line in text.splitlines())]


def _change(request: ReviewRequest) -> list[str]:
    counted = [file for file in request.change.weight.files if file.counts]
    lines = [
        f"- `{plain_line(file.path)}` +{file.added} −{file.removed} "
        f"({file.kind or 'file'}{', critical' if file.critical else ''})"
        for file in counted[:_SHOWN]
    ]
    if len(counted) > _SHOWN:
        lines.append(f"- and {len(counted) - _SHOWN} more; all of them: gitgates review status")
    note = request.change.began_note
    return ["", *lines, *([f"Note: {note}."] if note else ())]


def _location(request: ReviewRequest) -> str:
    return f" in {quote(request.root_abs)}" if request.root_abs else ""


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]


def stop_allowed(request: ReviewRequest, how: str) -> str:
    """Return the message to the person about an agent that may stop without a review."""
    why = _cap(request.change.weight.why)
    what = "not reviewed" if request.why == NOT_REVIEWED else "the reviewer did not say COMPLETE"
    hint = (
        " If the reviewer was not permitted to run its commands, allow `Bash(gitgates review:*)`."
        if request.why == NO_DECISION
        else ""
    )
    return (
        f"gitgates: review: {what}, and the agent was allowed to stop {how}. {why}."
        f"{hint} See: gitgates review status"
    )


def strict_began(review: Review, agents: tuple[str, ...]) -> str:
    """Return the text for an agent whose prompt starts the strict form."""
    return (
        "The person requests an independent review of this work. When the work is done, start "
        "the sub-agent"
        f" {_reviewer(review, find_reviewer(review, agents))}; you can stop once it has posted "
        "COMPLETE on the final content."
    )


def reviewer_task(review: Review, token: str) -> str:
    """Return the reviewer's instructions: its token, and how to decide."""
    opinions = (
        " `gitgates review diff --opinions` asks others for a second opinion; give that command a "
        "timeout of 600000."
        if review.second_opinions
        else ""
    )
    return (
        "You are the independent reviewer of this session, and work for the person, not for "
        "the agent that started you. You can only read. Start with `gitgates review diff`: the "
        "person's prompts, verbatim, what weakens the checks, and the change."
        f"{opinions} Then post your decision, once:\n"
        f"{_post(token)}\n"
        "The token is yours alone: do not write it anywhere else. Put text that contains `$` "
        "or backticks in single quotes. You cannot end without a decision."
    )


def sent_back(token: str, why: str) -> str:
    """Return the text for a reviewer that wants to end without a decision."""
    return (
        f"{why} Post your decision on the current change with this new token, then end:\n"
        f"{_post(token)}"
    )


def _post(token: str) -> str:
    return (
        f"gitgates review done --token {token} --decision COMPLETE|ISSUES --summary '…' "
        "[--reasoning '…'] [--message-to-agent '…'] [--second-opinion NAME='…']"
    )


_PLUGIN = "gitgates"  # our own plugin, which has a reviewer and a skill `review`


def installed(
    review: Review, root_abs: str, env: Mapping[str, str], agent: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the installed sub-agents and skills for reviews.

    They have a file in the project or in the person's own folder, or come with our plugin if it
    started us. Those of other plugins cannot be seen; if the configuration names one
    (`plugin:name`), it is assumed to be installed.
    """
    host = agent_host(agent or DEFAULT_AGENT)
    folders = host.folders_of(root_abs, env)
    plugins = [plugin] if (plugin := host.plugin_of(env)) else []
    agents: list[str] = []
    for name in dict.fromkeys((review.reviewer, *review.agents)):
        agents += _if_installed(name, host.agent_files(name, folders))
        agents += _of_plugin(name, host.agent_files(name, plugins))
    skills: list[str] = []
    for name in review.skills:
        # We install a command, in a folder with the plugin's name.
        our_files = host.skill_files(f"{_PLUGIN}/{name}", folders)
        skills += _of_plugin(name, [*host.skill_files(name, plugins), *our_files])
        skills += _if_installed(name, host.skill_files(name, folders))
    return tuple(dict.fromkeys(agents)), tuple(dict.fromkeys(skills))


def find_reviewer(review: Review, agents: tuple[str, ...]) -> str:
    """Return the client's name for the reviewer; empty if it is not among `installed` agents."""
    return next((agent for agent in agents if matches_agent((review.reviewer,), agent)), "")


def _if_installed(name: str, files: list[str]) -> list[str]:
    is_pattern = not {*"*?|"}.isdisjoint(name)
    is_there = ":" in name or any(map(os.path.isfile, files))
    return [name] if is_there and not is_pattern else []


def _of_plugin(name: str, files: list[str]) -> list[str]:
    return [f"{_PLUGIN}:{name}"] if any(map(os.path.isfile, files)) else []


def rules_of(review: Review) -> str:
    """Return the review rules for a session's start."""
    names = {
        "reviewer": plain_line(review.reviewer, _LONGEST_NAME),
        "prefix": plain_line(review.prefix, _LONGEST_NAME),
    }
    if review.mode == "require":
        return _REQUIRED.format(**names)
    text = _REMINDED.format(**names) if review.mode == "remind" else "review:"
    return text + (_ASKED.format(**names) if review.prefix else "")
