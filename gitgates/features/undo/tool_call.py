"""The save points before and after a tool call that may change files."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.guarded import has_rules
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.features.undo.points import (
    AGENT,
    Author,
    EndedCall,
    close_calls,
    latest_call,
    open_call,
    record,
)
from gitgates.features.undo.settings import settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.undo.answer import Answer
    from gitgates.session.call import Call

_LONGEST = 120  # characters of a command, or of a prompt


def before(call: Call) -> Verdict:
    """Take a save point before a tool; say what a command would destroy."""
    answer = None
    if call.payload.tool_kind == "shell":
        answer = _answer(call)
        if answer and answer.action == "deny":
            return Verdict(BLOCK, to_agent=answer.text, final=True)
    asks = Verdict(ask=True, to_agent=answer.text) if answer and answer.action == "ask" else None
    if not settings_of(call.config).enabled:
        return asks or Verdict()
    try:
        _save(call, answer)
    except GitgatesError as error:
        if asks:
            return asks
        if not (answer and answer.losses):
            return Verdict(WARN, to_person=f"gitgates: no save point: {error}")
        what = answer.text.partition(" It was saved first")[0] or "it destroys what no commit holds"
        return Verdict(ask=True, to_agent=f"{what}\nIt cannot be saved first: {error}")
    return asks or Verdict()


def _answer(call: Call) -> Answer | None:
    """Return what to do about a shell command; None: nothing is at stake."""
    from gitgates.features.undo.relevant import may_matter

    command, config = call.payload.command, call.config
    if not (has_rules(config) and may_matter(command, config)):
        return None
    from gitgates.features.undo.answer import answer, situation_of  # most commands destroy nothing
    from gitgates.features.undo.ownership import OwnFiles

    situation = situation_of(call.repo, config, call.payload.cwd_abs, call.env)
    return answer(command, situation, config, OwnFiles(call.repo, call.payload.session).has)


def _save(call: Call, answer: Answer | None) -> None:
    """Record what has changed until now, and that a tool call begins."""
    settings = settings_of(call.config)
    record(call.repo, settings, latest_call(call.repo))
    noted = EndedCall()
    if answer:
        from gitgates.features.undo.elsewhere import save
        from gitgates.features.undo.git_state import keep_branches

        keep_branches(call.repo)
        told = answer.text if answer.action == "save" else ""  # else it is told before
        noted = EndedCall(told, save(call.repo, settings, answer.roots_abs))
    open_call(call.repo, _key(call), _author(call), noted)


def after(call: Call) -> Verdict:
    """Take a save point after a tool; say how what a command has destroyed comes back."""
    try:
        told, ways = _end_call(call)
    except GitgatesError as error:
        return Verdict(WARN, to_person=f"gitgates: no save point: {error}")
    if not (told and ways):
        return Verdict()
    text = f"{told.removesuffix('gitgates undo')}{'; '.join(ways)}"
    return Verdict(WARN, to_agent=text, to_person=text)


def _end_call(call: Call) -> tuple[str, list[str]]:
    """Record what a tool call has changed; return what is to be said, and how it comes back."""
    key, author, settings = _key(call), _author(call), settings_of(call.config)
    point = record(call.repo, settings, author)
    ended = close_calls(call.repo, lambda each, _author: each == key)
    noted = ended[0] if ended else EndedCall()
    ways = record_elsewhere(call, noted, author)
    return noted.told, [*([f"gitgates undo {point.id}"] if point else []), *ways]


def record_elsewhere(call: Call, noted: EndedCall, author: Author) -> list[str]:
    """Record what has changed in other worktrees; return how it comes back."""
    if not noted.elsewhere:
        return []
    from gitgates.features.undo.elsewhere import record_ended  # few commands change one

    return record_ended(call.repo, settings_of(call.config), noted.elsewhere, author)


def _key(call: Call) -> str:
    payload = call.payload
    return payload.tool_use_id or f"{payload.session} {payload.agent_id} {payload.tool}"


def _author(call: Call) -> Author:
    from gitgates.features.undo.prompts import prompt_words

    payload = call.payload
    first_path = next(iter(call.edited_paths or payload.paths), "")
    what = payload.command if payload.tool_kind == "shell" else first_path
    return Author(
        by=AGENT,
        session=payload.session,
        agent=payload.agent_type or payload.agent_id,
        prompt=int(call.prompt) if call.prompt.isdecimal() else 0,
        prompt_text=prompt_words(call.repo, payload.session),
        tool=payload.tool,
        what=" ".join(what.split())[:_LONGEST],
    )
