"""What an agent's Stop has proved is not run again by its commit and its push."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import bash, write
from scene import CHECK, STOP, Scene

HOOKS = '[hooks.pre-commit]\ngates = ["check"]\n[hooks.pre-push]\ngates = ["check"]\n'


def scene_with(tmp_path: Path, check: str) -> Scene:
    """Return a scene with the check in all hooks, and what it has run so far not counted."""
    scene = Scene(tmp_path, check + STOP + HOOKS)
    scene.repo.gitgates("install-hooks")
    scene.repo.add_origin()
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    (tmp_path / "ran").unlink(missing_ok=True)
    return scene


def work(scene: Scene) -> str:
    """Have the agent write a file, stop, commit and push; return what the commands printed."""
    ship = "git add -A && git commit -qm work && git push -q origin main; echo shipped: $?"
    turns = (write(scene.at("good.txt"), "x"), "done", bash(ship), "shipped")
    return scene.run(*turns, prompts=("write it", "ship it")).told(3)


def test_a_pass_at_stop_counts_for_commit_and_push(tmp_path: Path) -> None:
    scene = scene_with(tmp_path, f"{CHECK}reuse = true\n")
    printed = work(scene)
    assert "shipped: 0" in printed
    assert "reused         0.00 s  Stop, " in printed
    assert scene.ran() == 1


@pytest.mark.nightly
def test_without_reuse_each_hook_runs_the_gate(tmp_path: Path) -> None:
    scene = scene_with(tmp_path, CHECK)
    assert "shipped: 0" in work(scene)
    assert scene.ran() == 3
