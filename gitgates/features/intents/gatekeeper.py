"""The gatekeeper for intents: whether a tool that is about to write may be used.

`judge_write`, which is pure, decides; the rest collects its input and composes the texts.
"""

from __future__ import annotations

from gitgates.core.types import BLOCK, Verdict
from gitgates.drivers.rules import APPROVE
from gitgates.features.intents.approved import intents_in_force
from gitgates.features.intents.intent import IntentsError, settings_of
from gitgates.features.intents.lease import held_by, holder_of, lost_by, read_leases, renew
from gitgates.features.intents.scope import can_be_inside, is_in_scope, is_matched, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.drivers.call import Call
    from gitgates.features.intents.intent import Intent, Intents, IntentSettings
    from gitgates.features.intents.lease import Holder, Leases

_MOST_LISTED = 12
_MOST_NEAREST = 3
_MOST_NAMED = 8
NEEDED = (
    "This repository requires an intent to be selected before anything is written. Select the "
    "one that matches your task; if none does, ask the person."
)
_OR_RELEASE = "To work without an intent, if that is allowed: gitgates intent release"
OFFERED = "If your task belongs to one of these intents, select it before you write anything."


def decide_tool(call: Call, so_far: Verdict) -> Verdict:
    """Decide about a tool that may write; renew its user's lease."""
    kind, paths = call.payload.tool.kind, call.edited_paths
    leases = renewed_leases(call)
    if kind == "ours":
        from gitgates.drivers.shell_commands import name_caller  # rare: tools of `gitgates mcp`

        return name_caller(call, so_far)
    if so_far.level >= BLOCK or paths == () or kind not in ("shell", "writes"):
        return so_far  # nothing outside the repository is checked
    settings = settings_of(call.config)
    try:
        intents = intents_in_force(call)
    except IntentsError:
        if paths == (settings.file,) or (kind == "shell" and _only_reads(call)):
            return so_far  # a broken file can always be fixed
        raise
    verdict = judge_write(
        intents,
        leases,
        holder_of_call(call),
        paths or (),
        settings=settings,
        ignore_case=call.repo.ignores_case,
    )
    if kind == "shell" and (verdict.level < BLOCK or _only_reads(call)):
        from gitgates.drivers.shell_commands import name_caller

        return name_caller(call, so_far)
    return so_far.joined(verdict)


def judge_write(
    intents: Intents,
    leases: Leases,
    holder: Holder,
    paths: Sequence[str],
    *,
    settings: IntentSettings,
    ignore_case: bool = False,
) -> Verdict:
    """Return the verdict on a tool that is about to write: refuse, ask, or let pass.

    `paths`: relative to the root, links resolved; empty if they are not known.
    """
    why = ""
    if lease := held_by(leases, holder):
        intent = intents.get(lease.intent)
        if intent is None or not intent.is_active:
            became = intent.status if intent else f"no longer in {intents.file}"
            why = f"{lease.intent}, which you hold, is {became}; nothing may be written for it."
        else:
            for path in paths:
                if not is_in_scope(intents, intent, path, ignore_case=ignore_case):
                    text = _out_of_scope(intents, leases, intent, path, ignore_case=ignore_case)
                    return Verdict(BLOCK, to_agent=f"gitgates: {text}", final=True)
    elif lost := lost_by(leases, holder):
        why = f"{lost.intent}, which you held, expired and was taken over by {lost.holder}."
    elif settings.required:
        why = NEEDED
    if why:
        text = f"gitgates: {why}\n{describe_active(intents, leases, holder)}"
        if why != NEEDED:
            text += f"\n{_OR_RELEASE}"
        return Verdict(BLOCK, to_agent=text, final=True)
    asked_paths = [
        path for path in paths if is_matched(path, settings.ask, ignore_case=ignore_case)
    ]
    if asked_paths:
        text = f"gitgates: a person must permit changes to {join_paths(asked_paths)}"
        return Verdict(ask=True, to_agent=f"{text} (`ask` of [tool.gitgates.intents]).")
    return Verdict()


def _only_reads(call: Call) -> bool:
    from gitgates.drivers.reading import is_reading  # only needed for shell commands

    return is_reading(call.payload.tool.command)


# Texts for the agent


def describe_active(intents: Intents, leases: Leases, holder: Holder) -> str:
    """Return a line for each selectable intent: who holds it, and how to select it."""
    active = intents.active
    if not active:
        has = (
            "has no intent IN_PROGRESS" if intents.intents else "has no intents, or does not exist"
        )
        return (
            f"None can be selected: {intents.file}, as committed or as approved by a person in a "
            f"terminal with `{APPROVE}`, {has}."
        )
    lines = [
        f"  gitgates intent select {intent.id}  # {_described(intent, leases, holder)}"
        for intent in active[:_MOST_LISTED]
    ]
    if len(active) > _MOST_LISTED:
        lines.append(f"  and {len(active) - _MOST_LISTED} more: gitgates intent list")
    return "\n".join(lines)


def _described(intent: Intent, leases: Leases, holder: Holder) -> str:
    lease = leases.get(intent.id)
    holding = f": {lease.holding}" if lease and lease.is_live and lease.holder != holder else ""
    return f"{intent.title} ({', '.join(intent.owned_scope)}){holding}"


def _out_of_scope(
    intents: Intents, leases: Leases, selected: Intent, path: str, *, ignore_case: bool
) -> str:
    """Return why a path may not be written, the nearest intents, and how to ask for more."""
    scope = ", ".join(selected.owned_scope)
    lines = [f"{join_paths([path])} is outside the scope of {selected.id}: {scope}"]
    if is_matched(path, (f"/{intents.file}",), ignore_case=ignore_case):
        lines.append(
            "It defines what agents may work on, so no scope contains it. Leave it unchanged."
        )
        return "\n".join(lines)
    others = tuple(intent for intent in intents.active if intent.id != selected.id)
    near = nearest(others, path, _MOST_NEAREST, ignore_case=ignore_case)
    if near:
        holder = leases[selected.id].holder
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

    escaped = [f"\\{char}" if char in "\\*?[" else char for char in path]
    pattern = "".join(char if char.isprintable() else "?" for char in escaped)
    if "/" not in path:
        pattern = f"/{pattern}"
    elif path[0] in "-!#~":
        pattern = f"\\{pattern}"
    pattern = shlex.quote(pattern)
    return f'  gitgates intent scope-expansion-request {intent_id} {pattern} --reason "…"'


def join_paths(paths: Sequence[str]) -> str:
    """Return a few paths as a line for an agent; control characters in names are escaped."""
    from gitgates.core.clean import first_few, visible_line

    return first_few([*map(visible_line, paths)], _MOST_NAMED)


# An event's holder


def holder_of_call(call: Call) -> Holder:
    """Return the session or sub-agent that an event belongs to."""
    return holder_of(call.payload.session, call.payload.agent.id)


def renewed_leases(call: Call) -> Leases:
    """Return all leases, with the event's holder's renewed. Raises: StateError, LockError."""
    if call.is_dry:
        return read_leases(call.repo.shared_state_abs)
    return renew(call.repo.shared_state_abs, holder_of_call(call), call.repo.git_dir_abs)
