"""An agent commits round the gates; the push finds that out, and runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import bash, write
from scene import CHECK, Scene

CONFIG = f"""{CHECK}
[hooks.pre-commit]
gates = ["check"]
[hooks.pre-push]
verify = true
[hooks.Stop]
gates = ["check"]
"""
# In a script, so that nothing sees it before it has happened.
SCRIPT = "git add -A && git commit -q --no-verify -m round\n"


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", ["bad.txt", "good.txt"])
def test_an_agent_that_commits_without_hooks_is_found_at_the_push(
    tmp_path: Path, name: str
) -> None:
    scene = Scene(tmp_path, CONFIG)
    scene.repo.gitgates("install-hooks")
    scene.repo.add_origin()
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    run = scene.run(
        write(tmp_path / "round.sh", SCRIPT),
        bash(f"touch {name} && sh ../round.sh && rm {name} && git commit -qam mended"),
        bash("gitgates verify; git push -q origin main; echo pushed: $?"),
        "end",
    )
    pushed = run.told(3)
    assert "bypassed the gates: check  round" in pushed
    assert "gated                      mended" in pushed
    is_bad = name == "bad.txt"
    assert ("BAD-IS-THERE" in pushed, "round: not pushed" in pushed) == (is_bad, is_bad)
    assert f"pushed: {int(is_bad)}" in pushed
    ids = [scene.repo.git("rev-parse", one) for one in ("main", "origin/main")]
    assert (ids[0] == ids[1]) is not is_bad
