"""What a client's shell destroys comes back, byte for byte, and the agent is told at once."""

from __future__ import annotations

import os
from pathlib import Path

import others
import pytest
from claude import Run, bash
from host_scene import HostScene, need
from others import Call, shell
from scene import CHECK, STOP, Scene

COMMANDS = (
    "git reset --hard",
    "rm -r src link",  # with -f, Codex itself refuses it
    "git checkout -- .",
    "git checkout HEAD -- tracked.py",
    "git checkout -f",
    "git restore tracked.py",
    "git restore --staged --worktree .",
    "git add tracked.py; git reset --merge HEAD",
    "git clean -fd",
    "git switch -f topic",
    "git stash && git stash drop",
    "git stash clear; rm tracked.py",
    "git rm -q --cached tracked.py; rm tracked.py",
    "rm tracked.py",
    "find . -name '*.py' -delete",
    "find src -type f -exec rm {} +",
    "mv tracked.py src/new.py",
    "cp crlf.txt tracked.py",
    "echo x > tracked.py",
    "truncate -s 0 tracked.py",
    "dd if=/dev/null of=tracked.py",
    "shred -u tracked.py",
    "sed -i d tracked.py",
    "printf '' | tee tracked.py src/run.sh",
    "git branch -D topic; git worktree prune; : > 'odd\nname'",
)


CLIENTS = (".claude", ".codex", ".gemini", ".qwen", ".factory", ".github", ".opencode", ".kilo")


def filled(scene: Scene) -> None:
    """Put staged, unstaged, untracked, executable, linked, CRLF and oddly named files there."""
    root = Path(scene.repo.path)
    (root / "src").mkdir()
    (root / "tracked.py").write_text("one\n")
    (root / "src/run.sh").write_text("#!/bin/sh\n")
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / ".gitattributes").write_text("*.txt text eol=lf\n")
    scene.repo.git("config", "user.name", "Person")
    scene.repo.git("config", "user.email", "person@example.invalid")
    scene.repo.git("add", "-A")
    scene.repo.git("commit", "-qnm", "base")
    scene.repo.git("branch", "topic")
    (root / "tracked.py").write_text("stashed\n")
    scene.repo.git("stash")
    (root / "tracked.py").write_text("staged\n")
    scene.repo.git("add", "tracked.py")
    (root / "tracked.py").write_text("unstaged\n")
    (root / "src/run.sh").chmod(0o700)
    (root / "src/new.py").write_bytes(b"untracked\r\n")
    (root / "link").symlink_to("src/new.py")
    (root / "odd\nname").write_text("odd\n")
    (root / "crlf.txt").write_bytes(b"c\r\nd\n")
    (root / "crlf.txt").chmod(0o600)


def state(scene: Scene) -> dict[str, object]:
    """Return all that has to come back."""
    found: dict[str, object] = {}
    root = Path(scene.repo.path)
    for folder, folders, names in os.walk(root):
        # Nor what clients themselves write.
        folders[:] = [name for name in folders if name not in CLIENTS and name != ".git"]
        for name in [*names, *folders]:
            path = Path(folder, name)
            content = (
                os.readlink(path)
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else ""
            )
            found[str(path.relative_to(root))] = (oct(path.lstat().st_mode), content)
    found["index"] = scene.repo.git("ls-files", "--stage", "-z")
    found["stash"] = scene.repo.git("stash", "list", "--format=%H")
    found["branches"] = scene.repo.git("for-each-ref", "refs/heads")
    return found


def destroyed_and_undone(scene: Scene, call: Call) -> Run:
    """Have an agent run a command; return what came of it, when an undo has given all back."""
    filled(scene)
    before = state(scene)
    run = scene.session(call, "done") if isinstance(scene, HostScene) else scene.run(call, "done")
    assert state(scene) != before, "the command has not done what it is here for"
    done = scene.repo.gitgates("undo", "1", "--index", "--branch")
    assert done.returncode == 0, done.stderr
    now = state(scene)
    # A branch that the command has made stays, and is named.
    now["branches"] = [line for line in str(now["branches"]).splitlines() if "/other" not in line]
    assert now == {**before, "branches": str(before["branches"]).splitlines()}
    return run


@pytest.mark.samples(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_destroys_comes_back(tmp_path: Path, command: str) -> None:
    run = destroyed_and_undone(Scene(tmp_path, CHECK + STOP), bash(command))
    assert "gitgates undo 1" in run.told(1)
    assert "gitgates undo 1" in run.person


# Of the clients with an event before each tool: a few commands, and all with two of them.
HOSTS = tuple(host for host in others.HOSTS if host not in ("kimi", "vibe", "hermes", "openhands"))
EACH = ("codex", "gemini")
FEW = ("git reset --hard", "git add tracked.py; git reset --merge HEAD")


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("host", "command"),
    [(host, command) for host in HOSTS for command in (COMMANDS if host in EACH else FEW)],
)
def test_what_the_shell_of_other_clients_destroys_comes_back(
    tmp_path: Path, host: str, command: str
) -> None:
    need(host)
    run = destroyed_and_undone(HostScene(tmp_path, host, config=CHECK + STOP), shell(host, command))
    assert host not in EACH or "gitgates undo 1" in run.told(1)
