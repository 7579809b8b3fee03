"""The gatekeeper of intents: whether a tool may be used that is about to write.

`judge_write`, which is pure, decides; the rest collects its input and writes the texts.
"""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.types import BLOCK, Verdict
from gitgates.features.intents.approved import intents_in_force
from gitgates.features.intents.facts import IntentWriteEntry
from gitgates.features.intents.file import TABLE, IntentSettings
from gitgates.features.intents.intent import IntentsError
from gitgates.features.intents.lease import held_by, holder_of, lost_by, read_leases, renew
from gitgates.features.intents.scope import is_in_scope
from gitgates.session.rules import APPROVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.features.intents.intent import Intent, Intents
    from gitgates.features.intents.lease import Holder, Leases
    from gitgates.session.call import Call

_MOST_LISTED = 12
_MOST_NEAREST = 3
_MOST_PATTERNS = 4
_MOST_NAMED = 8
NEEDED = (
    "This repository requires an intent to be selected before anything is written. Select the "
    "one that matches your task; if none does, ask the person."
)
_OR_RELEASE = "To work without an intent, where that is allowed: gitgates intent release"
OFFERED = "If your task belongs to one of these intents, select it before you write anything."


def decide_tool(call: Call, so_far: Verdict) -> Verdict:
    """Decide about a tool that may write; renew the lease of its user."""
    payload, paths = call.payload, call.edited_paths
    leases = renewed_leases(call)
    is_shell = payload.tool_kind == "shell"
    if payload.tool_kind == "ours":
        from gitgates.session.shell_commands import name_caller  # seldom: of `gitgates mcp`

        return name_caller(call, so_far)
    if so_far.level >= BLOCK or paths == () or not (is_shell or payload.tool_kind == "writes"):
        return so_far  # nothing outside the repository is checked
    settings = intent_settings(call)
    try:
        intents = intents_in_force(call)
    except IntentsError:
        if paths == (settings.file,) or (is_shell and _only_reads(call)):
            return so_far  # a broken file can always be fixed
        raise
    verdict = judge_write(
        intents,
        leases,
        holder_of_call(call),
        paths,
        settings=settings,
        ignore_case=call.repo.ignores_case,
    )
    if is_shell:
        from gitgates.session.shell_commands import name_caller

        is_refused = verdict.level >= BLOCK and not _only_reads(call)
        return so_far.joined(verdict) if is_refused else name_caller(call, so_far)
    if verdict.level < BLOCK and paths:
        # So that a later comparison does not attribute these files to a shell command.
        verdict = verdict._replace(entries=(IntentWriteEntry(paths),))
    return so_far.joined(verdict)


def judge_write(
    intents: Intents,
    leases: Leases,
    holder: Holder,
    paths: Sequence[str] | None,
    *,
    settings: IntentSettings,
    ignore_case: bool = False,
) -> Verdict:
    """Return the verdict on a tool that is about to write: refused, asked about, or passed.

    `paths`: relative to the root, links resolved; None: unknown ones.
    """
    lease = held_by(leases, holder)
    intent = intents.get(lease.intent) if lease else None
    if lease is None:
        lost = lost_by(leases, holder)
        if lost:
            why = f"{lost.intent}, which you held, expired and was taken over by {lost.holder}."
            return _refused(f"{why}\n{describe_active(intents, leases, holder)}\n{_OR_RELEASE}")
        if settings.required:
            return _refused(f"{NEEDED}\n{describe_active(intents, leases, holder)}")
    elif intent is None or not intent.is_active:
        became = intent.status if intent else f"no longer in {intents.file}"
        why = f"{lease.intent}, which you hold, is {became}; nothing may be written for it."
        return _refused(f"{why}\n{describe_active(intents, leases, holder)}\n{_OR_RELEASE}")
    else:
        for path in paths or ():
            if not is_in_scope(intents, intent, path, ignore_case=ignore_case):
                return _refused(
                    out_of_scope(intents, leases, intent, path, ignore_case=ignore_case)
                )
    asked_paths = [
        path for path in paths or () if _matches(path, settings.ask, ignore_case=ignore_case)
    ]
    if asked_paths:
        text = f"gitgates: a person must permit changes of {join_paths(asked_paths)}"
        return Verdict(ask=True, to_agent=f"{text} (`ask` of [tool.gitgates.intents]).")
    return Verdict()


def _refused(text: str) -> Verdict:
    return Verdict(BLOCK, to_agent=f"gitgates: {text}", final=True)


def _matches(path: str, patterns: tuple[str, ...], *, ignore_case: bool) -> bool:
    if not patterns:
        return False
    from gitgates.engine.match import matches, parse

    if ignore_case:
        path, patterns = path.casefold(), tuple(pattern.casefold() for pattern in patterns)
    return matches(path, [*map(parse, patterns)])


def _only_reads(call: Call) -> bool:
    from gitgates.session.reading import is_reading  # only shells pay for it

    return is_reading(call.payload.command)


# Texts for the agent.


def describe_active(intents: Intents, leases: Leases, holder: Holder) -> str:
    """Return a line for each intent that can be selected, who has it, and how to select it."""
    active = intents.active
    if not active:
        why = (
            "has no intent IN_PROGRESS" if intents.intents else "has no intents, or does not exist"
        )
        return (
            f"None can be selected: {intents.file} {why} as committed, or as approved by a "
            "person in a terminal with"
            f" `{APPROVE}`."
        )
    lines = [
        f"  gitgates intent select {intent.id}  # {_described(intent, leases, holder)}"
        for intent in active
    ]
    more = len(lines) - _MOST_LISTED
    rest = [f"  and {more} more: gitgates intent list"] if more > 0 else []
    return "\n".join([*lines[:_MOST_LISTED], *rest])


def _described(intent: Intent, leases: Leases, holder: Holder) -> str:
    scope = ", ".join(intent.owned_scope[:_MOST_PATTERNS])
    more = ", …" if len(intent.owned_scope) > _MOST_PATTERNS else ""
    lease = leases.get(intent.id)
    holding = f": {lease.holding}" if lease and lease.is_live and lease.holder != holder else ""
    return f"{intent.title} ({scope}{more}){holding}"


def out_of_scope(
    intents: Intents, leases: Leases, selected: Intent, path: str, *, ignore_case: bool
) -> str:
    """Return why a path may not be written, the nearest intents, and how to ask for more."""
    from gitgates.features.intents.scope import can_be_inside, nearest

    if path == intents.file:
        return (
            f"{join_paths([path])} defines what agents may work on: it is in no scope. Leave it "
            "unchanged; for more files:"
            f" gitgates intent scope-expansion-request {selected.id} …"
        )
    others = tuple(intent for intent in intents.active if intent.id != selected.id)
    near = nearest(others, path, _MOST_NEAREST, ignore_case=ignore_case)
    holder = leases[selected.id].holder
    scope = ", ".join(selected.owned_scope)
    lines = [f"{join_paths([path])} is outside the scope of {selected.id}: {scope}"]
    if near:
        lines.append("Closest other intents:")
        lines += [f"  {intent.id}: {_described(intent, leases, holder)}" for intent in near]
        lines.append(f"Switch to one if it matches your task: gitgates intent select {near[0].id}")
    if can_be_inside(path):
        lines.append(
            f"If {selected.id} needs this file, request it, and continue with what is in scope:"
        )
        lines.append(request(selected.id, path))
    return "\n".join(lines)


def request(intent_id: str, path: str) -> str:
    """Return the command that asks for a larger scope."""
    import shlex

    pattern = "".join([_in_pattern(char) for char in path])
    if "/" not in path:
        pattern = f"/{pattern}"
    elif path[0] in "-!#~":
        pattern = f"\\{pattern}"
    pattern = shlex.quote(pattern)
    return f'  gitgates intent scope-expansion-request {intent_id} {pattern} --reason "…"'


def join_paths(paths: Sequence[str]) -> str:
    """Return a few paths, for an agent: a name can have line ends."""
    from gitgates.core.clean import first_few, visible_line

    return first_few([*map(visible_line, paths)], _MOST_NAMED)


def _in_pattern(char: str) -> str:
    if not char.isprintable():
        return "?"
    return f"\\{char}" if char in "\\*?[" else char


# The intents and the holder of an event.


def intent_settings(call: Call) -> IntentSettings:
    """Return the settings, without which the policy is not asked."""
    return table_of(call.config, TABLE, IntentSettings)


def holder_of_call(call: Call) -> Holder:
    """Return the session, or the sub-agent, that an event is of."""
    return holder_of(call.payload.session, call.payload.agent_id)


def renewed_leases(call: Call) -> Leases:
    """Return all leases, that of the event's holder renewed. Raises: StateError, LockError."""
    if call.is_dry:
        return read_leases(call.repo.shared_state_abs)
    return renew(call.repo.shared_state_abs, holder_of_call(call), call.repo.git_dir_abs)
