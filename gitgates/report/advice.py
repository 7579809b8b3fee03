"""What an agent should do next, and the way out. Cold and pure."""

from __future__ import annotations

_UNABLE = (
    "A gate that could not run says nothing about your work. Put right what it lacks if you may; "
    "do not change or leave out the gate."
)


_HEADING = "## What to do now"


def warning_advice(hook: str, *, unable: bool) -> list[str]:
    """Return the lines under "What to do now" where nothing is refused."""
    goes_on = "The tool call goes on. " if hook == "PreToolUse" else ""
    mind = "Mind what is reported above where it is part of your task."
    return [_HEADING, *([_UNABLE] if unable else []), goes_on + mind]


def advice(hook: str, gates: list[str], *, unable: bool, last: bool | None) -> list[str]:
    """Return the lines under "What to do now". `last` is None where there are no retries."""
    lines = [_HEADING, *([_UNABLE] if unable else [])]
    if hook == "PreToolUse":
        return [*lines, "The tool call was not made. Fix what is reported above, then make it."]
    if last is None:
        return [
            *lines,
            "What is reported above is about the work as it is now. Fix it, then go on.",
        ]
    if not gates:
        return [
            *lines,
            "There is nothing more to try. End your turn, and tell the person what fails.",
        ]
    lines.append("Fix what is reported above, then end your turn again; the gates run again then.")
    if last:
        lines.append(
            "If gates still fail then, there is no further attempt, and the person is told which."
        )
    others = f", likewise for {', '.join(gates[1:10])}" if gates[1:] else ""
    lines.append(
        "If a gate cannot be made to pass, say why instead of trying on: "
        f'`gitgates cannot-fix {gates[0]} --reason "…"`{others}. That is no pass: it ends the '
        "retries for the gate, and the person is told, in the report too."
    )
    return lines
