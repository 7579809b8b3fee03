"""Sessions that are odd: two hooks for one event, strange names and texts, folders that vanish."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from claude import Client, Turn, agent, bash, read, write
from scene import CHECK, STOP, UNGUARDED, Scene, gitgates_abs


@pytest.mark.nightly
def test_two_hooks_at_once_count_an_attempt_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + "max_retries = 2\n")
    scene.add_hook(f"{gitgates_abs()} agent-hook claude", "UserPromptSubmit", "Stop")
    scene.commit()
    grow = bash("echo y >> bad.txt")
    # The agent says the same each time, so that no stop differs from the one before.
    run = scene.run(write(scene.at("bad.txt"), "x"), "same", grow, "same", grow, "same", "never")
    assert "attempt 1 of 3" in run.told(2)
    assert "attempt 2 of 3" in run.told(4)
    assert (run.turns, scene.ran()) == (6, 3)


@pytest.mark.nightly
def test_two_sessions_in_one_worktree_are_both_checked(tmp_path: Path) -> None:
    gate = CHECK.replace("test ! -e", "sleep 0.5; test ! -e")
    scene = Scene(tmp_path, gate + STOP + "max_retries = 1\n")
    scene.repo.write("bad.txt", "was here before")
    (tmp_path / "other").mkdir()
    other = Client(tmp_path / "other")
    with ThreadPoolExecutor() as pool:
        runs = (
            pool.submit(scene.run, write(scene.at("a.txt"), "x"), "1", "2"),
            pool.submit(other.run, [write(scene.at("b.txt"), "x"), "1", "2"], cwd=scene.path),
        )
    for run in runs:
        assert "attempt 1 of 2" in run.result().told(2)


def test_a_commit_of_the_agent_runs_gits_hooks(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + '[hooks.pre-commit]\ngates = ["check"]\n')
    assert scene.repo.gitgates("install-hooks").returncode == 0
    commit = "git add -A; git -c user.name=a -c user.email=a@b.c commit -qm x"
    mend = bash(f"git mv bad.txt good.txt; {commit}; git status --short")
    run = scene.run(write(scene.at("bad.txt"), "x"), bash(commit), mend, "end")
    assert "BAD-IS-THERE" in run.told(2)
    assert (run.turns, run.ends) == (4, ["completed"])


@pytest.mark.nightly
def test_all_of_a_long_output_is_not_told(tmp_path: Path) -> None:
    command = "echo FIRST-LINE; yes 'some text' | head -n 50000; echo LAST-LINE; exit 1"
    scene = Scene(tmp_path, f'[gates.check]\ncommand = "{command}"\n{STOP}max_retries = 1\n')
    run = scene.run(write(scene.at("a.txt"), "x"), "1", "2")
    told = run.told(2)
    assert "attempt 1 of 2" in told
    assert "LAST-LINE" in told
    assert "gitgates cannot-fix" in told
    assert "persisted-output" not in told
    assert len(run.answers("Stop")[0]["reason"]) <= 10_000


@pytest.mark.nightly
def test_output_that_is_no_text(tmp_path: Path) -> None:
    command = "printf 'caf\\351 \\303\\251t\\303\\251 \\033[31mred\\033[0m \\000 END'; exit 1"
    scene = Scene(tmp_path, f"[gates.check]\ncommand = '''{command}'''\n{STOP}max_retries = 1\n")
    run = scene.run(write(scene.at("a.txt"), "x"), "1", "2")
    assert "été" in run.told(2)
    assert "red" in run.told(2)
    assert "END" in run.told(2)


@pytest.mark.nightly
def test_a_folder_with_an_odd_name(tmp_path: Path) -> None:
    folder = tmp_path / "a b é 'c' $d"
    folder.mkdir()
    scene = Scene(folder)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt 'good é.txt'"), "2")
    assert "BAD-IS-THERE" in run.told(2)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_a_folder_that_vanishes_under_the_agent(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    gone = bash("mkdir gone && cd gone && rmdir ../gone")
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), gone, "1"),
        *(bash(f"mv {scene.at('bad.txt')} {scene.at('good.txt')}"), "2"),
    )
    assert "BAD-IS-THERE" in run.told(3)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_a_gate_gets_the_event_where_it_asks_for_it(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "cat > ../event.json"\npass_hook_input = true\n'
    scene = Scene(tmp_path, gate + STOP)
    run = scene.run(write(scene.at("a.txt"), "x"), "last words")
    event = json.loads((tmp_path / "event.json").read_text())
    assert event["hook_event_name"] == "Stop"
    assert event["session_id"] == run.session
    assert event["last_assistant_message"] == "last words"


def test_a_hook_that_the_client_gives_up_on_leaves_nothing_running(tmp_path: Path) -> None:
    once = "[ -e ../once ] || { touch ../once; sleep 30; }"
    scene = Scene(tmp_path, f"[gates.check]\ncommand = '{once}; echo BAD; exit 1'\n{STOP}")
    file = scene.at(".claude/settings.json")
    settings = json.loads(file.read_text())
    settings["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 1
    file.write_text(json.dumps(settings))
    run = scene.run(
        *(write(scene.at("a.txt"), "x"), "1", bash("sleep 0.2"), "2"),
        prompts=("one", "two"),
    )
    assert run.results[0]["result"] == "1"
    assert "attempt 1 of 4" in run.told(4)
    assert run.end["orphans"] == 0


def test_tools_that_are_used_at_once(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = ["echo", "CHECKED"]\npass_files = true\non_pass = "BLOCK"\n'
    scene = Scene(tmp_path, gate + '[hooks.PostToolUse]\ngates = ["check"]\n')
    names = [f"f{i}.txt" for i in range(4)]
    for name in names:
        scene.repo.write(name, name)
    together: Turn = tuple(read(scene.at(name)) for name in names)
    run = scene.run(together, "end")
    told = run.told(1)
    assert [name for name in names if f"CHECKED {name}" not in told] == []
    facts = scene.journal(run.session)
    assert [f["tool"] for f in facts if f.get("event") == "PostToolUse"] == ["Read"] * 4


@pytest.mark.nightly
def test_a_sub_agent_in_the_background_is_gated(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.SubagentStop]\ngates = ["check"]\n')
    run = scene.run(
        *(agent("WORD", background=True), "waiting", "end"),
        agents={"WORD": [write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "2"]},
    )
    assert "BAD-IS-THERE" in run.told(2, "agent WORD")
    assert "BAD-IS-THERE" not in run.told_ever()
    assert run.end["turns_left"] == {}


@pytest.mark.nightly
def test_a_configuration_that_the_agent_breaks_by_itself_is_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + '[hooks.PostToolUse]\ngates = ["check"]\n' + UNGUARDED)
    file = scene.at("pyproject.toml")
    whole = file.read_text()
    run = scene.run(read(file), write(file, whole.replace("command", "comand")), "1")
    assert "comand" in run.told(2)
    assert "comand" in run.told(3)


@pytest.mark.nightly
def test_a_state_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + UNGUARDED)
    spoil = bash("rm -rf .git/gitgates; touch .git/gitgates")
    run = scene.run(write(scene.at("bad.txt"), "x"), spoil, "1", "2")
    assert run.turns == 3
    assert "so gate results at Stop do not count" in run.person


@pytest.mark.nightly
def test_a_long_prompt_with_odd_characters(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "2"),
        prompts=("é\U0001f600 " * 50_000,),
    )
    assert "BAD-IS-THERE" in run.told(2)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_the_person_is_told_what_has_changed_of_the_checks(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + "required = true\n" + STOP + UNGUARDED)
    weaken = "echo x >> .git/info/exclude; git update-index --skip-worktree seed.txt"
    off = """printf '{"env": {"GITGATES": "0"}}' > .claude/settings.local.json"""
    turns = (bash(weaken), "one", bash(off), "two", "three")
    run = scene.run(*turns, prompts=("a", "b", "c"))
    first, second = (answer["systemMessage"].splitlines() for answer in run.answers("Stop"))
    assert [line.split()[1] for line in first] == [".git/info/exclude", "files"]
    assert len(second) == 1
    assert "has set GITGATES=0 since this session began: the required gate `check`" in second[0]
