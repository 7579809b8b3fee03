"""Where a session is: in a subfolder, in a linked worktree, outside any repository."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from claude import Options, Run, bash, read, write
from conftest import Repo
from others import Call
from scene import CHECK, COMMAND, STOP, Scene


def silent(run: Run) -> bool:
    """Return whether no hook answered anything."""
    return not any(run.answers(e) for e in ("SessionStart", "UserPromptSubmit", "Stop"))


def test_in_a_subfolder_the_gates_run_in_the_root(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.repo.write("sub/seed.txt", "seed\n")
    scene.commit()
    run = scene.run(
        bash("cd sub"), write(scene.at("bad.txt"), "x"), "1", bash("mv ../bad.txt ../good.txt"), "2"
    )
    assert "BAD-IS-THERE" in run.told(3)
    assert (run.results[0]["result"], scene.ran()) == ("2", 2)


def test_a_session_in_a_linked_worktree(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    linked = tmp_path / "linked"
    scene.repo.git("worktree", "add", "-q", str(linked), "-b", "other")
    run = scene.run(
        write(linked / "bad.txt", "x"), "1", bash("mv bad.txt good.txt"), "2", cwd=linked
    )
    assert "BAD-IS-THERE" in run.told(2)
    assert run.results[0]["result"] == "2"
    assert scene.journal(run.session, ".git/worktrees/linked")
    assert not scene.at(".git/gitgates/sessions").exists()


def test_started_in_a_subfolder_only_some_settings_are_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.repo.write("sub/seed.txt", "seed\n")
    scene.commit()
    sub = scene.at("sub")
    assert silent(scene.run(write(scene.at("bad.txt"), "x"), "1", cwd=sub))
    doctor = Repo(sub).gitgates("doctor").stdout.decode()
    assert "Claude Code runs no hooks if it is started here, in `sub`: it reads" in doctor
    fix = ("install-hooks", "--agent", "claude", "--scope", "local")
    assert scene.repo.gitgates(*fix).returncode == 0
    run = scene.run(bash("echo x > ../bad.txt"), "1", bash("rm ../bad.txt"), "2", cwd=sub)
    assert "BAD-IS-THERE" in run.told(2)
    assert "started here" not in Repo(sub).gitgates("doctor").stdout.decode()


def test_a_session_above_the_worktrees_of_a_bare_repository(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    folder = tmp_path / "proj"
    scene.repo.git("clone", "-q", "--bare", ".", str(folder / ".bare"))
    (folder / ".git").write_text("gitdir: ./.bare\n")
    Repo(folder).git("worktree", "add", "-q", "main")
    shutil.copytree(scene.at(".claude"), folder / ".claude")
    run = scene.run(*(bash("echo x > main/bad.txt"), "1", bash("rm main/bad.txt"), "2"), cwd=folder)
    assert f"In {folder}/main: " in run.told(2)
    assert "BAD-IS-THERE" in run.told(2)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_a_session_that_moves_into_a_linked_worktree(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    # Out of the folders that it may work in, the client does not let its shell go.
    linked = tmp_path / "linked"
    scene.repo.git("worktree", "add", "-q", str(linked), "-b", "other")
    run = scene.run(
        *(bash(f"cd {linked}"), bash("echo x > bad.txt"), "1", bash("mv bad.txt good.txt"), "2"),
        options=Options(arguments=("--add-dir", str(linked))),
    )
    assert (linked / "good.txt").exists()
    assert "BAD-IS-THERE" in run.told(3)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_a_session_that_makes_a_worktree_for_itself(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    enter = Call("EnterWorktree", {"name": "own"})
    run = scene.run(enter, bash("echo x > bad.txt"), "1", bash("mv bad.txt good.txt"), "2")
    assert scene.at(".claude/worktrees/own/good.txt").exists()
    assert "BAD-IS-THERE" in run.told(3)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_what_is_committed_in_a_worktree_of_its_own_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    commit = bash(
        "echo x > bad.txt; git add -A; git -c user.name=a -c user.email=a@b.c commit -qm x"
    )
    run = scene.run(Call("EnterWorktree", {"name": "own"}), commit, "1", "2")
    assert "BAD-IS-THERE" in run.told(3)


@pytest.mark.nightly
def test_what_was_left_in_the_first_worktree_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    enter = Call("EnterWorktree", {"name": "own"})
    run = scene.run(write(scene.at("bad.txt"), "x"), enter, "1", "2")
    assert "BAD-IS-THERE" in run.told(3)


@pytest.mark.nightly
def test_from_within_another_repository_the_first_one_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    nested = bash("git init -q nested; echo /nested > .git/info/exclude; cd nested")
    run = scene.run(write(scene.at("bad.txt"), "x"), nested, "1", "2")
    assert "BAD-IS-THERE" in run.told(3)


@pytest.mark.nightly
def test_a_configuration_that_goes_away_is_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("bad.txt"), "x"), bash("rm pyproject.toml"), "1", "2")
    assert run.answers("Stop") != []


@pytest.mark.nightly
def test_without_git_the_person_is_told_once_and_nothing_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, git=False)
    run = scene.run(write(scene.at("bad.txt"), "x"), "end")
    assert (run.turns, scene.ran()) == (2, 0)
    assert run.answers("UserPromptSubmit") == run.answers("Stop") == []
    assert "not a git repository" in run.answers("SessionStart")[0]["systemMessage"]


@pytest.mark.nightly
def test_without_a_configuration_nothing_is_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path, config="")
    run = scene.run(write(scene.at("bad.txt"), "x"), "end")
    assert (run.turns, silent(run), run.person) == (2, True, "")


def test_a_broken_configuration_blocks_until_it_is_mended(tmp_path: Path) -> None:
    before = '[hooks.PreToolUse]\ngates = ["check"]\n'
    scene = Scene(tmp_path, CHECK + STOP + before)
    file = scene.at("pyproject.toml")
    whole = file.read_text()
    run = scene.run(
        *(read(file), write(file, f"{whole}[[["), "1", write(file, whole), "2"),
    )
    assert "pyproject.toml" in run.told(3)
    assert "gitgates check" in run.told(3)
    assert file.read_text() == whole
    assert (run.turns, run.results[0]["result"]) == (5, "2")


@pytest.mark.nightly
def test_the_edit_that_mends_the_configuration_is_let_through(tmp_path: Path) -> None:
    before = '[hooks.PreToolUse]\nenabled_tools = ["Write"]\ngates = ["chekc"]\n'
    scene = Scene(tmp_path, CHECK + before.replace("chekc", "check"))
    file = scene.at("pyproject.toml")
    mended = file.read_text()
    scene.repo.config(CHECK + before)
    run = scene.run(read(file), write(file, mended), write(scene.at("a.txt"), "x"), "end")
    assert file.read_text() == mended
    assert scene.at("a.txt").exists()
    assert run.results[0]["result"] == "end"


@pytest.mark.nightly
def test_a_gate_that_is_not_defined_stops_what_it_is_to_check(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.repo.config(CHECK + STOP.replace('"check"', '"chekc"'))
    run = scene.run(write(scene.at("a.txt"), "x"), "1", "2")
    assert (run.turns, run.ends) == (2, ["stop_hook_prevented"])
    assert "chekc" in run.answers("Stop")[0]["stopReason"]


@pytest.mark.nightly
def test_in_a_folder_of_repositories_those_that_were_there_run_their_gates(tmp_path: Path) -> None:
    folder = Scene(tmp_path, config="", git=False)
    folder.add_hook(COMMAND, "PostToolUse")
    far, near = (Repo.init(path) for path in (tmp_path / "far", folder.at("near")))
    for one in (far, near):
        one.config('[gates.mark]\ncommand = "touch ran"\n[hooks.PostToolUse]\ngates = ["mark"]\n')
        one.commit_all("all")
    clone = bash("git clone -q ../far cloned")
    new, old = (write(folder.at(f"{name}/a.txt"), "x") for name in ("cloned", "near"))
    folder.run(old, clone, new, "end")
    assert folder.at("near/ran").exists()
    assert folder.at("cloned/a.txt").exists()
    assert not folder.at("cloned/ran").exists()


def test_a_worktree_of_an_agent_gets_what_gates_need(tmp_path: Path) -> None:
    table = '[worktree]\nagents = true\nsetup = "sleep 1; mkdir deps; cp seed.txt deps/"\n'
    gate = '[gates.deps]\ncommand = "grep seed deps/seed.txt"\n[hooks.Stop]\ngates = ["deps"]\n'
    scene = Scene(tmp_path, table + gate)
    scene.repo.write(".gitignore", "deps/\n")
    scene.commit()
    linked = tmp_path / "linked"
    scene.repo.git("worktree", "add", "-q", str(linked), "-b", "other")
    run = scene.run(write(linked / "good.txt", "x"), "1", "2", cwd=linked)
    assert run.results[0]["result"] == "1"
    assert (linked / "deps/seed.txt").read_text() == "seed\n"
    assert not scene.at("deps").exists()
