"""Each rule of the guard in the real client: all ways to write it, and all that looks like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from claude import bash
from guard_cases import CONFIG, SHELL
from scene import Scene
from test_guard import rules

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 4096
FIRST = ("hooks_path", "agent_settings")


def unrun(command: str) -> str:
    """Return a command line that has the command in it and does not run it."""
    return f"if false; then :\n{command}\nfi"


@pytest.mark.samples(2)
@pytest.mark.parametrize("rule", [*FIRST, *(rule for rule in SHELL if rule not in FIRST)])
def test_a_rule(tmp_path: Path, rule: str) -> None:
    scene = Scene(tmp_path, CONFIG)
    scene.repo.git("config", "alias.sneaky", "commit --no-verify")
    scene.repo.git("config", "alias.ci", "commit")
    scene.repo.write("sub/a", "")
    scene.commit()
    ways, fine = ([one for one in half if len(one) < LONGEST] for half in SHELL[rule])
    if rule == "uninstall":  # where one were let through, it would take away what is tested here
        ways = [unrun(one) for one in ways]
    fine = fine if rule == "unreadable" else [unrun(one) for one in fine]
    run = scene.run(*map(bash, (*ways, *fine)), "end")
    of_guard = [each for each in rules(run) if each != "lost_work"]  # which may ask about it, too
    assert of_guard == [rule] * len(ways)
    answered = [one.get("hookSpecificOutput", {}) for one in run.answers("PreToolUse")]
    denied = [one for one in answered if one.get("permissionDecision") == "deny"]
    assert len(denied) in (0, len(ways))  # a rule that only warns refuses nothing
