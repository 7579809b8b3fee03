"""The guard, with the real client: what it refuses, what it lets through, what becomes of files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from claude import Run, bash, edit, read, write
from scene import CHECK, STOP, Scene

FOUND = re.compile(r"gitgates: guard rule `(\w+)`: ")
MESSAGE = "git commit -q --allow-empty -m \"$(cat <<'EOF'\nDon't use --no-verify\n\nEOF\n)\""
REFUSED = {
    "git commit --allow-empty --no-verify -m x": "no_verify",
    "bash -c 'git commit --allow-empty -nm x'": "no_verify",
    "echo x | xargs git commit --allow-empty -n -m": "no_verify",
    "git -c core.hooksPath=/dev/null commit --allow-empty -m x": "hooks_path",
    "git config core.hooksPath /tmp/x": "hooks_path",
    "HUSKY=0 git commit --allow-empty -m x": "skip_variables",
    "export GITGATES=0; git commit --allow-empty -m x": "skip_variables",
    "gitgates uninstall-hooks": "uninstall",
    "gitgates approve review skip": "person_verbs",
    "cd .git && rm -f hooks/pre-commit": "hooks_folder",
    "chmod -x .git/hooks/*": "hooks_folder",
    "echo '{}' > .claude/settings.json": "agent_settings",
    "rm -rf .claude": "agent_settings",
    "echo '[tool.gitgates]' >> pyproject.toml": "gate_settings",
    "rm -rf .git/gitgates": "state_folder",
    "mv .git ../gone": "git_folder",
    "echo seed.txt >> .git/info/exclude": "git_exclude",
    "git update-index --skip-worktree seed.txt": "hidden_files",
    "echo x > .claude/agents/reviewer.md": "reviewer_files",
    "claude -p x --dangerously-skip-permissions": "nested_agent",
    "git commit --no-verify 'x": "no_verify",
    "git commit -m 'x --no-verify": "unreadable",
}
FINE = {
    'echo "--no-verify"': "--no-verify",
    MESSAGE: "",
    "git log --format=%B -1": "Don't use --no-verify",
    "ls .git/hooks; cat .git/HEAD": "ref: refs/heads/",
    "git config core.hooksPath || echo none": "none",
    "SKIP=slow sh -c 'echo ran'": "ran",
    "echo x > .claude/notes && cat .claude/notes": "x",
    "rm -rf .github *.orig; echo gone": "gone",
}


def begin(folder: Path, more: str = "") -> Scene:
    """Return a repository whose agent can commit."""
    scene = Scene(
        folder, CHECK + STOP.replace('"]', '", "review"]') + '[review]\nmode = "off"\n' + more
    )
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.org")
    return scene


def rules(run: Run) -> list[str]:
    """Return the rules that the model was told of, in order."""
    return FOUND.findall(run.told_ever())


def answers(run: Run) -> list[str]:
    """Return what was decided of each tool call about which anything was said."""
    own = [one.get("hookSpecificOutput", {}) for one in run.answers("PreToolUse")]
    return [one["permissionDecision"] for one in own if "permissionDecision" in one]


def test_commands_that_go_round_the_gates_are_refused(tmp_path: Path) -> None:
    scene = begin(tmp_path)
    scene.repo.gitgates("install-hooks")
    before = scene.repo.git("rev-parse", "HEAD")
    run = scene.run(*map(bash, REFUSED), "end")
    assert rules(run) == [*REFUSED.values()]
    assert answers(run) == ["deny"] * len(REFUSED)  # nobody can be asked
    assert scene.repo.git("rev-parse", "HEAD") == before
    assert scene.repo.git("status", "--porcelain") == ""
    assert scene.repo.git("config", "--list").count("hookspath") == 0


def test_commands_that_only_look_like_it_are_run(tmp_path: Path) -> None:
    scene = begin(tmp_path)
    run = scene.run(*map(bash, FINE), "end")
    assert rules(run) == []
    assert answers(run) == []
    for number, output in enumerate(FINE.values(), 1):
        assert output in run.told(number)


def test_guarded_files_are_not_written_and_others_are(tmp_path: Path) -> None:
    scene = begin(tmp_path)
    scene.repo.write("other.toml", "[tool.other]\nx = 1\n")
    project = scene.at("pyproject.toml")
    project.write_text(project.read_text() + "[tool.other]\nx = 1\n")
    settings = scene.at(".claude/settings.json")
    was = settings.read_text()
    run = scene.run(
        *(read(settings), write(settings, "{}"), write(scene.at(".git/hooks/pre-commit"), "")),
        *(read(project), edit(project, "x = 1", "x = 2"), edit(project, "BAD-IS-THERE", "GOOD")),
        *(write(scene.at("gitgates.local.toml"), "jobs = 1\n"), write(scene.at("a.txt"), "a")),
        "end",
    )
    assert rules(run) == ["agent_settings", "hooks_folder", "gate_settings", "gate_settings"]
    assert settings.read_text() == was
    assert "x = 2" in project.read_text()
    assert "BAD-IS-THERE" in project.read_text()
    assert not scene.at("gitgates.local.toml").exists()
    assert scene.at("a.txt").read_text() == "a"


def test_the_worktree_of_the_session_is_not_removed_unasked(tmp_path: Path) -> None:
    scene = begin(tmp_path)
    linked, other = tmp_path / "linked", tmp_path / "other"
    for path in (linked, other):
        scene.repo.git("worktree", "add", "-q", str(path), "-b", path.name)
    gone = bash(f"git worktree remove {other}")
    own = (bash("git worktree remove ."), bash("git worktree remove --force ."))
    run = scene.run(*own, gone, "end", cwd=linked)
    assert rules(run).count("worktree") == 2
    assert answers(run) == ["deny", "deny"]  # nobody is there to be asked
    assert (linked.exists(), other.exists()) == (True, False)


@pytest.mark.nightly
def test_what_a_rule_answers_is_configured(tmp_path: Path) -> None:
    guard = '[guard]\nno_verify = "warn"\nhidden_files = "off"\n'
    scene = begin(tmp_path, guard)
    commit = bash("git commit -q --allow-empty --no-verify -m x && echo done-it")
    run = scene.run(commit, bash("git update-index --assume-unchanged seed.txt; echo $?"), "end")
    assert rules(run) == ["no_verify"]
    assert answers(run) == []
    assert "done-it" in run.told(1)


@pytest.mark.nightly
def test_gates_of_git_alone_are_guarded(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.pre-commit]\ngates = ["check"]\n')
    scene.repo.gitgates("install-hooks")
    before = scene.repo.git("rev-parse", "HEAD")
    run = scene.run(
        write(scene.at("bad.txt"), "x\n"),
        bash("git add -A && git commit -q --no-verify -m x"),
        bash("echo bad.txt >> .gitignore"),
        "end",
    )
    assert rules(run) == ["no_verify"]
    assert scene.repo.git("rev-parse", "HEAD") == before
    assert scene.ran() == 0  # no gate runs where the agent stops


@pytest.mark.nightly
def test_the_trace_alone_is_guarded(tmp_path: Path) -> None:
    scene = begin(tmp_path, '[trace]\nmode = "on"\n')
    scene.repo.config('[trace]\nmode = "on"\n')
    scene.install()
    run = scene.run(bash("rm -rf .git/gitgates"), bash("git commit -q --no-verify -m x"), "end")
    assert rules(run) == ["state_folder", "no_verify"]


def test_what_a_program_has_written_is_told_at_the_next_stop(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.pre-commit]\ngates = ["check"]\n')
    assert scene.repo.gitgates("install-hooks").returncode == 0
    script = """
import os
os.rename(".g" + "it/ho" + "oks/pre-c" + "ommit", "away")
path = ".cl" + "aude/sett" + "ings.json"
text = open(path).read()
open(path, "w").write(text.replace("PreTool" + "Use", "Notification"))
"""
    run = scene.run(write(scene.at("x.py"), script), bash("python3 x.py"), "end")
    (answer,) = run.answers("Stop")
    since = "have changed since this session began"
    assert answer["systemMessage"].splitlines() == [
        f"gitgates: git's hooks {since}; to check them: gitgates doctor",
        (
            "gitgates: the hooks of gitgates in the agent's settings have changed, or are switched "
            "off, since this session began; to check them: gitgates doctor"
        ),
    ]
