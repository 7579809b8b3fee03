"""Weakened checks in the real client: they are told at the end of the turn, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import bash
from scene import Scene
from test_review import REVIEW, blocks

TEST = "def test_sub():\n    assert sub(3, 2) == 1\n"
LINE = "tests/test_sums.py: test skipped"


def scene_in(folder: Path, config: str = REVIEW) -> Scene:
    scene = Scene(folder, config)
    scene.repo.write("tests/test_sums.py", TEST)
    return scene


def test_a_skipped_test_is_told_to_the_agent_once_and_to_the_person(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    skip = bash(f"sed -i '1i @pytest.mark.skip' {scene.at('tests/test_sums.py')}")
    run = scene.run(skip, "finished", "it is flaky", "yes", prompts=("go", "and?"))
    assert f"Your changes weaken the checks: {LINE}" in run.told(2)
    assert f"the agent's changes weaken the checks: {LINE}" in run.person
    assert (blocks(run), run.results[-1]["result"]) == (1, "yes")


@pytest.mark.nightly
def test_it_blocks_until_there_is_a_reason(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, f'{REVIEW}[review]\nweakened = "block"\n')
    skip = bash(f"sed -i '1i @pytest.mark.skip' {scene.at('tests/test_sums.py')}")
    reason = bash("gitgates review skip --reason 'it is flaky'")
    run = scene.run(skip, "1", "2", reason, "3")
    assert (blocks(run), run.results[-1]["result"]) == (2, "3")
    assert "none is needed: it is flaky" in run.person
