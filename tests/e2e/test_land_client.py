"""Two sessions in two worktrees, green alone and red together: the second is told, and mends."""

from __future__ import annotations

from pathlib import Path

from claude import bash, write
from scene import Scene

CONFIG = """
[gates.together]
command = "test ! -e one.txt || test ! -e two.txt || { echo NOT-BOTH; exit 1; }"
[hooks.pre-push]
gates = ["together"]
[hooks.Stop]
gates = ["together"]
[land]
target = "main"
"""


def test_who_is_red_together_with_another_mends_and_lands(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CONFIG)
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    land = "git add -A && git commit -qm change && gitgates land"
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        scene.repo.git("worktree", "add", "-q", "-b", folder.name, str(folder))
    one = scene.run(write(first / "one.txt", "1"), bash(land), "done", cwd=first)
    two = scene.run(
        write(second / "two.txt", "2"),
        bash(land),
        bash(f"git mv two.txt three.txt && {land}"),
        "done",
        cwd=second,
    )
    assert (one.ends, two.ends) == (["completed"], ["completed"])
    assert "NOT-BOTH" in two.told(2)
    assert "two.txt" in two.told(2)
    landed = scene.repo.git("ls-tree", "--name-only", "main", "--", "one.txt", "two.txt")
    assert landed == "one.txt"
    assert scene.repo.git("log", "--first-parent", "--format=%s", "main").splitlines()[:2] == [
        "Merge branch 'second'",
        "Merge branch 'first'",
    ]
    assert (scene.at("one.txt").read_text(), scene.at("three.txt").read_text()) == ("1", "2")
