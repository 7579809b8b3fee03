"""The review gate in the real client: the reminder, and what satisfies it."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Run, Turn, after, agent, bash, binary, edit, write
from scene import UNGUARDED, Scene

REVIEW = '[hooks.Stop]\ngates = ["review"]\n'
LINES = "".join(f"line = {number}\n" for number in range(60))
ASKS = "there is no evidence of one"
DONE = "gitgates review done --summary 'read all of it'"


def scene_in(folder: Path, config: str = REVIEW) -> Scene:
    """Return a repository with a skill, a command and a type of sub-agent that review."""
    scene = Scene(folder, config)
    head = "---\nname: {0}\ndescription: reviews the change\n---\nReview it.\n"
    scene.repo.write(".claude/skills/code-review/SKILL.md", head.format("code-review"))
    scene.repo.write(".claude/commands/security-review.md", "Review it: $ARGUMENTS\n")
    scene.type_of_agent("code-reviewer")
    return scene


def blocks(run: Run) -> int:
    return [answer.get("decision") for answer in run.answers("Stop")].count("block")


def test_a_change_of_sixty_lines_is_blocked_once_and_done_lets_go(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(write(scene.at("a.py"), LINES), "finished", bash(DONE), "end")
    told = run.told(2)
    assert ASKS in told
    assert "60 weighted lines (threshold 40)" in told
    assert "a.py" in told
    assert (blocks(run), run.ends, run.turns) == (1, ["completed"], 4)


@pytest.mark.nightly
def test_explain_tells_an_agent_what_its_stop_is_then_told(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    explain = bash("gitgates explain Stop")
    run = scene.run(write(scene.at("a.py"), LINES), explain, "finished", bash(DONE), "end")
    reason = next(one["reason"] for one in run.answers("Stop") if one)
    explained = [line.strip() for line in run.told(2).splitlines()]
    first, *more = (line.strip() for line in reason.splitlines())
    at = explained.index(f"review: block: {first}")
    assert explained[at + 1 : at + 1 + len(more)] == more
    assert explained[at - 1] == f"Stop in session {run.session}, now:"


@pytest.mark.nightly
def test_a_question_never_sees_us(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run("because", "well", prompts=("why?", "and?"))
    assert (blocks(run), run.turns, run.person) == (0, 2, "")
    assert run.answers("Stop") == []


@pytest.mark.nightly
def test_a_skill(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    skill: Turn = skill_call("code-review")
    run = scene.run(write(scene.at("a.py"), LINES), "finished", skill, "end")
    assert (blocks(run), run.ends, run.turns) == (1, ["completed"], 4)


def skill_call(name: str) -> Turn:
    call = write("", "")
    return call._replace(name="Skill", input={"skill": name})


@pytest.mark.nightly
def test_a_typed_command(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    typo = edit(scene.at("a.py"), "line = 7\n", "line = 70\n")
    run = scene.run(
        *(write(scene.at("a.py"), LINES), "1", "2", "3", "4", typo, "reviewed"),
        prompts=("go", "/security-review a.py"),
    )
    assert blocks(run) == 3  # of the first prompt, before the breaker
    assert "review: not reviewed, and the agent was allowed to stop" in run.person
    assert run.results[1]["result"] == "reviewed"
    told = [fact["how"] for fact in scene.journal(run.session) if fact["what"] == "marker"]
    assert told == ["command"]


@pytest.mark.nightly
def test_without_the_typed_command_the_same_is_blocked(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    typo = edit(scene.at("a.py"), "line = 7\n", "line = 70\n")
    run = scene.run(
        *(write(scene.at("a.py"), LINES), "1", "2", "3", "4", typo, "5", bash(DONE), "6"),
        prompts=("go", "a typo"),
    )
    assert blocks(run) == 4


@pytest.mark.samples(1)
@pytest.mark.parametrize("background", [False, True])
def test_a_sub_agent(tmp_path: Path, *, background: bool) -> None:
    scene = scene_in(tmp_path)
    start = agent("WORD", "code-reviewer", background=background)
    waiting = ("waiting", "end") if background else ("end",)
    run = scene.run(
        *(write(scene.at("a.py"), LINES), "finished", start, *waiting),
        agents={"WORD": [after(0.5, "looks good", main_turns=4 if background else 0)]},
    )
    assert ASKS in run.told(2)
    assert blocks(run) == 1
    assert run.ends[-1] == "completed"


@pytest.mark.nightly
def test_a_typo_passes_and_another_sixty_lines_do_not(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        *(write(scene.at("a.py"), LINES), "1", bash(DONE), "2"),
        *(edit(scene.at("a.py"), "line = 7\n", "line = 70\n"), "3"),
        *(write(scene.at("b.py"), LINES), "4", bash(DONE), "5"),
        prompts=("go", "a typo", "more"),
    )
    assert blocks(run) == 2
    assert [one["result"] for one in run.results] == ["2", "3", "5"]
    assert "b.py" in run.told(8)
    assert "no longer covers it" in run.told(8)


def test_commits_and_rebases_hide_nothing_and_void_nothing(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    hide = "git add -A && git commit -qm work && git commit -q --amend -m again"
    theirs = (
        "git checkout -q -b theirs HEAD~1 && echo x > theirs.txt && git add -A && "
        "git commit -qm theirs && git checkout -q - && git rebase -q theirs"
    )
    run = scene.run(
        *(write(scene.at("a.py"), LINES), bash(hide), "1", bash(DONE), bash(theirs), "2"),
    )
    assert ASKS in run.told(3)
    assert (blocks(run), run.results[-1]["result"]) == (1, "2")
    assert (scene.at("theirs.txt")).exists()


@pytest.mark.nightly
def test_a_worktree_made_filled_and_merged_by_the_shell_is_asked_for(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    work = bash(
        "git worktree add -q -b side ../side && cd ../side && seq 60 > a.py && git add a.py && "
        "git -c user.name=a -c user.email=a@b.c commit -qm work && cd - && git merge -q side && "
        "git worktree remove ../side && git branch -qd side"
    )
    run = scene.run(work, "1", bash(DONE), "2")
    assert "`a.py` +60" in run.told(2)
    assert (blocks(run), run.results[-1]["result"]) == (1, "2")


@pytest.mark.nightly
def test_no_review_needed(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    skip = bash("cd . && gitgates review skip --reason 'made by a tool'")
    run = scene.run(write(scene.at("a.py"), LINES), "1", skip, "2")
    assert (blocks(run), run.results[-1]["result"]) == (1, "2")


@pytest.mark.nightly
def test_a_lost_journal_does_not_make_the_next_tool_the_beginning(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    lose = bash("rm -rf .git/gitgates")
    run = scene.run(write(scene.at("a.py"), LINES), lose, "1", bash("true"), "2", bash(DONE), "3")
    assert (blocks(run), run.results[-1]["result"]) == (2, "3")
    assert "`a.py` +60" in run.told_ever()


@pytest.mark.nightly
def test_the_same_review_blocks_three_times(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    turns: list[Turn] = [write(scene.at("a.py"), LINES)]
    for number in range(5):
        turns += ["no", bash(f"echo {number} >> b.py")]
    run = scene.run(*turns)
    assert blocks(run) == 3
    assert "allowed to stop after 3 blocks in this prompt" in run.person


@pytest.mark.nightly
def test_ten_blocks_are_the_end_of_a_prompt(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    turns: list[Turn] = []
    for number in range(12):
        turns += [write(scene.at(f"new{number}.py"), LINES), "no", bash(DONE)]
    run = scene.run(*turns)
    assert blocks(run) == 10
    assert "allowed to stop after 10 blocks in this prompt" in run.person


@pytest.mark.samples(1)
@pytest.mark.parametrize("command", ["git diff", "true", "touch x"])
def test_what_a_person_writes_between_tools_is_theirs(tmp_path: Path, command: str) -> None:
    scene = scene_in(tmp_path)
    person = f"sleep .3; test ! -e ../once || seq 300 > {scene.at('theirs.py')}; touch ../once"
    scene.add_hook(f"(cd {scene.path}; {person}) > /dev/null 2>&1 &", "PostToolUse")
    calls = (write(scene.at("a.py"), "x = 1\n"), bash(command), after(1.5, bash("ls")))
    run = scene.run(*calls, bash(command), "1")
    assert scene.at("theirs.py").exists()
    assert blocks(run) == 0


@pytest.mark.nightly
def test_what_is_written_while_a_command_runs_counts(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    own = bash(f"seq 300 > {scene.at('own.py')}")
    run = scene.run(write(scene.at("a.py"), "x = 1\n"), own, bash("true"), "1", bash(DONE), "2")
    assert blocks(run) == 1


@pytest.mark.nightly
def test_a_file_that_both_edit_counts_with_all_of_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    file = scene.at("a.py")
    file.write_text("first = 1\n\n\nlast = 1\n")
    scene.commit()
    person = f"grep -q 'first = 2' {file} && ! grep -q line {file} && sed -i '3r ../lines' {file}"
    (tmp_path / "lines").write_text(LINES)
    scene.add_hook(person, "PostToolUse")
    first = edit(file, "first = 1\n", "first = 2\n")
    run = scene.run(bash(f"cat {file}"), first, edit(file, "last = 1\n", "last = 2\n"), "1")
    assert f"first = 2\n\n\n{LINES}" in file.read_text()
    assert blocks(run) == 3


@pytest.mark.nightly
def test_what_a_session_inside_of_this_one_writes_counts_for_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, '[review]\nmode = "require"\n' + REVIEW + UNGUARDED)
    inner = bash(f"{binary()} -p inner --dangerously-skip-permissions")
    work = (write(scene.at("a.py"), LINES), "inner 1", "inner 2", "inner 3", "inner 4")
    run = scene.run(inner, *work, "outer")
    assert len(list(scene.at(".git/gitgates/sessions").glob("*.jsonl"))) == 2
    said = [answer["reason"] for answer in run.answers("Stop") if "reason" in answer]
    assert said
    assert all("`a.py` +60" in reason for reason in said)


FORMAT = """
[gates.format]
command = "sed -i 's/ =/:=/' a.py"
writes = true
"""


@pytest.mark.nightly
@pytest.mark.parametrize("hook", ["Stop", "PostToolUse"])
def test_what_a_formatter_of_ours_rewrites_is_not_the_agents(tmp_path: Path, hook: str) -> None:
    gates = REVIEW.replace('["review"]', '["format", "review"]')
    after_edits = f'[hooks.PostToolUse]\nenabled_tools = ["Edit"]\ngates = ["format"]\n{REVIEW}'
    scene = Scene(tmp_path, FORMAT + (gates if hook == "Stop" else after_edits))
    file = scene.at("a.py")
    file.write_text(LINES)
    scene.commit()
    typo = edit(file, "line = 7\n", "line = 70\n")
    run = scene.run(typo, "1")
    assert file.read_text().count(":=") == 60
    assert blocks(run) == 0
    large = edit(file, "line:= 9\n", LINES)
    again = scene.run(large, "1", bash(DONE), "2", edit(file, "line:= 5\n", "line = 50\n"), "3")
    assert blocks(again) == 1
    assert ASKS in again.told(2)


@pytest.mark.nightly
def test_what_was_committed_or_stashed_before_the_session_is_not_its_work(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    repo, before = scene.repo, {"GIT_COMMITTER_DATE": "@1700000000 +0000"}
    repo.git("checkout", "-qb", "older")
    repo.write("old.py", LINES)
    repo.git("add", ".")
    repo.git("commit", "-qm", "of the person", env=before)
    repo.git("checkout", "-q", "main")
    repo.write("stashed.py", LINES)
    repo.git("stash", "push", "-qu")
    # What HEAD's log has of the second before may be the session's.
    repo.git("reflog", "expire", "--expire=now", "HEAD")
    run = scene.run(bash("git cherry-pick older"), bash("git stash pop"), "1")
    assert scene.at("old.py").read_text() == scene.at("stashed.py").read_text() == LINES
    assert blocks(run) == 0
    again = scene.run(bash("seq 60 > own.py"), "1", bash(DONE), "2")
    assert blocks(again) == 1
