"""Advice in the real client: what it is told, and the hooks at each moment of its work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude import Options, Run, agent, bash, write
from scene import Scene

COMMIT = "git add -A && git commit -q -m work"


def advice(trigger: str, command: str = "", *, how: str = "warn", more: str = "") -> str:
    """Return an advice entry that leaves a line outside the repository each time that it runs."""
    ran = f"echo {how} >> $GITGATES_E2E_RAN; {command}"
    return (
        f'[[advice]]\ntitle = "{trigger} {how}"\nhook_command = "{ran}"\n'
        f'hook_trigger = "{trigger}"\nhook_on_failure = "{how}"\n{more}\n'
    )


def fails(trigger: str, how: str) -> str:
    return advice(trigger, f"echo {how.upper()}-SAYS; false", how=how)


class Advised(Scene):
    """A scene whose advice leaves its lines in one file."""

    def __init__(self, folder: Path, config: str) -> None:
        super().__init__(folder, config)
        self.repo.git("config", "user.email", "a@example.com")
        self.repo.git("config", "user.name", "A")

    def start(self, *turns: Any, env: dict[str, str] | None = None, **more: Any) -> Run:
        given = {"GITGATES_E2E_RAN": str(self.folder / "ran"), **(env or {})}
        return self.run(*turns, options=Options(env=given), **more)

    def with_git_hooks(self) -> Advised:
        done = self.repo.gitgates("install-hooks")
        assert done.returncode == 0, done.stderr
        return self

    def commits(self) -> int:
        return int(self.repo.git("rev-list", "--count", "HEAD").strip())

    def recorded(self, run: Run) -> list[tuple[str, str]]:
        entries = self.journal(run.session)
        return [(e["id"], e["status"]) for e in entries if e["what"] == "advice"]


def work(scene: Scene) -> Any:
    return write(scene.at("a.txt"), "x\n")


# before-commit, before-push


@pytest.mark.samples(1)
def test_before_commit_blocks_once_for_each_commit(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-commit", "block") + fails("before-commit", "warn"))
    scene.with_git_hooks()
    before = scene.commits()
    run = scene.start(work(scene), bash(COMMIT), "end")
    told = run.told(2)
    assert "BLOCK-SAYS" in told
    assert "WARN-SAYS" in told  # the others of the moment have run all the same
    assert "advice:before-commit-block" in told
    assert (scene.ran("block"), scene.ran("warn"), scene.commits()) == (1, 1, before)


@pytest.mark.nightly
def test_before_commit_warns_or_is_silent(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-commit", "warn") + fails("before-commit", "ignore"))
    scene.with_git_hooks()
    before = scene.commits()
    run = scene.start(work(scene), bash(COMMIT), "end")
    told = run.told_ever() + run.person
    assert "WARN-SAYS" in told
    assert "IGNORE-SAYS" not in told
    assert (scene.ran("warn"), scene.ran("ignore"), scene.commits()) == (1, 1, before + 1)


@pytest.mark.nightly
def test_advice_for_a_type_of_agent_runs_where_that_commits(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-commit", "block") + 'agent = "committer"\n')
    scene.with_git_hooks().type_of_agent("committer")
    before = scene.commits()
    steps = [work(scene), bash(COMMIT), "REPORT"]
    run = scene.start(agent("WORD", "committer"), bash(COMMIT), "end", agents={"WORD": steps})
    assert "BLOCK-SAYS" in run.told(2, "agent WORD")
    assert (scene.ran("block"), scene.commits()) == (1, before + 1)
    assert "before-commit: before-commit block (blocks)" in run.told(0, "agent WORD")
    assert "before-commit block" not in run.told(0)


@pytest.mark.nightly
def test_the_guard_keeps_an_agent_from_naming_itself_otherwise(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-commit", "block") + 'rig = "beads"\n')
    scene.with_git_hooks()
    before = scene.commits()
    commit = bash("git add -A; GITGATES_RIG=other git commit -q -m work")
    run = scene.start(work(scene), commit, "end", env={"GITGATES_RIG": "beads"})
    assert "guard rule `skip_variables`: GITGATES_RIG=other" in run.told(2)
    assert (scene.ran("block"), scene.commits()) == (0, before)


@pytest.mark.nightly
def test_before_push(tmp_path: Path) -> None:
    scene = Advised(tmp_path, advice("before-push", "test -e a.txt", how="block"))
    scene.with_git_hooks()
    scene.repo.git("init", "-q", "--bare", "../hub.git")
    push = bash("git push -q ../hub.git HEAD:refs/heads/main")
    run = scene.start(push, work(scene), bash(COMMIT), push, "end")
    assert "advice:before-push-block" in run.told(1)
    assert (scene.ran("block"), "failed" in run.told(4)) == (2, False)
    pushed = scene.repo.git("-C", "../hub.git", "rev-list", "--count", "main")
    assert int(pushed) == scene.commits()


@pytest.mark.nightly
def test_other_commands_run_nothing(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-commit", "block"))
    run = scene.start(work(scene), bash("git log -1 --format=commit; echo git commit"), "end")
    assert scene.ran("block") == 0
    assert run.answers("PreToolUse") == []


# session-end


def test_session_end_blocks_until_it_passes(tmp_path: Path) -> None:
    scene = Advised(tmp_path, advice("session-end", "echo TIDY-UP; test -e a.txt", how="block"))
    run = scene.start("one", work(scene), "two", "three", prompts=("go", "and?"))
    assert "TIDY-UP" in run.told(1)
    assert [one["result"] for one in run.results] == ["two", "three"]
    # At the second prompt's end, and at the session's, the content is what it has passed on.
    assert scene.recorded(run) == [
        ("session-end-block", "failed"),
        ("session-end-block", "passed"),
    ]
    assert scene.ran("block") == 2


@pytest.mark.nightly
def test_session_end_runs_again_where_the_content_has_changed(tmp_path: Path) -> None:
    scene = Advised(tmp_path, advice("session-end", "true"))
    scene.start("one", work(scene), "two", "three", prompts=("a", "b", "c"))
    assert scene.ran("warn") == 2


@pytest.mark.nightly
def test_session_end_that_fails_for_ever_is_let_go(tmp_path: Path) -> None:
    settings = "breaker = { prompt = 2, session = 9 }\n"
    scene = Advised(tmp_path, settings + fails("session-end", "block"))
    run = scene.start(*map(str, range(5)))
    assert (run.turns, run.ends) == (3, ["completed"])
    assert "gitgates let the agent stop after 2 blocks in this prompt" in run.person
    assert "BLOCK-SAYS" in run.person


@pytest.mark.nightly
def test_session_end_warns_or_is_silent(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("session-end", "warn") + fails("session-end", "ignore"))
    run = scene.start("one", "two", prompts=("a", "b"))
    assert "`advice:session-end-warn` failed (exit status 1)" in run.person
    assert "ignore" not in run.person
    assert "WARN-SAYS" in run.told(1)  # with the next prompt
    assert scene.recorded(run) == [("session-end-warn", "failed"), ("session-end-ignore", "passed")]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "more", "status"),
    [
        ("sleep 20", "hook_timeout = 1", "timed-out"),
        ("no-such-program-here", "", "not-started"),
    ],
)
def test_timeout_and_missing_command(tmp_path: Path, command: str, more: str, status: str) -> None:
    scene = Advised(tmp_path, advice("session-end", command, more=more))
    run = scene.start("end")
    assert scene.recorded(run) == [("session-end-warn", status)]
    assert {"timed-out": "timed out (limit 1 s)", "not-started": "could not be started"}[
        status
    ] in run.person


@pytest.mark.nightly
def test_wrong_target(tmp_path: Path) -> None:
    targets = advice("session-end", "true", more='rig = "beads"\nrole = "polecat"')
    scene = Advised(tmp_path, targets)
    scene.start("end", env={"GITGATES_RIG": "beads", "GITGATES_ROLE": "crew"})
    assert scene.ran("warn") == 0
    scene.start("end", env={"GITGATES_RIG": "beads", "GITGATES_ROLE": "polecat"})
    assert scene.ran("warn") == 1


@pytest.mark.nightly
def test_the_end_of_the_session_is_a_second_chance(tmp_path: Path) -> None:
    scene = Advised(tmp_path, advice("session-end", "true"))
    # Somebody else's hook, which ends after ours has passed.
    ours = "while ! test -s ../ran; do sleep 0.05; done; sleep 0.5; touch late.txt"
    scene.add_hook(ours, "Stop")
    run = scene.start("end")
    assert scene.recorded(run) == [("session-end-warn", "passed")] * 2


# before-handoff, guidance


@pytest.mark.nightly
def test_the_next_session_receives_a_handoff(tmp_path: Path) -> None:
    scene = Advised(tmp_path, advice("before-handoff", "test -e a.txt", how="block"))
    hand_over = bash("gitgates handoff -m 'The parser is done; next are its tests.'")
    first = scene.start(hand_over, work(scene), hand_over, "end")
    assert "advice:before-handoff-block" in first.told(1)
    assert "nothing was handed over" in first.told(1)
    assert "handed over as" in first.told(3)
    second = scene.start("thanks")
    text = second.told(0).partition("An earlier session handed over its work (")[2]
    assert "its content is unchanged" in text
    assert "The parser is done; next are its tests." in text
    third = scene.start("and me?")
    assert "handed over its work" not in third.told(0)
    assert scene.ran("block") == 2


@pytest.mark.nightly
def test_before_a_compaction_it_only_warns(tmp_path: Path) -> None:
    scene = Advised(tmp_path, fails("before-handoff", "block"))
    run = scene.start("one", "two", prompts=("a", "/compact", "b"))
    assert len(run.asked("compact")) == 1
    assert scene.recorded(run) == [("before-handoff-block", "failed")]
    assert "BLOCK-SAYS" in run.told_ever()


def test_guidance_is_for_whom_it_is_meant(tmp_path: Path) -> None:
    tables = (
        '[[advice]]\ntitle = "For all"\ndescription = "Be\\nbrief."\n'
        '[[advice]]\ntitle = "For reviewers"\nagent = "reviewer"\n'
        '[[advice]]\ntitle = "For others"\nrig = "other"\n'
        '[[advice]]\ntitle = "Old"\nstatus = "closed"\n'
    )
    scene = Advised(tmp_path, tables)
    scene.type_of_agent("reviewer")
    run = scene.start(agent("WORD", "reviewer"), "end", agents={"WORD": ["REPORT"]})
    head = "Advice for your work here:\n"
    assert f"{head}- For all: Be brief." in run.told(0)
    assert f"{head}- For reviewers\n- For all: Be brief." in run.told(0, "agent WORD")
    assert "For others" not in run.told_ever() + run.told_ever("agent WORD")
    assert "Old" not in run.told(0)


# Every moment, with every end

ENDS = {
    "block": "failed",
    "warn": "failed",
    "ignore": "passed",
    "passes": "passed",
    "slow": "timed-out",
    "missing": "not-started",
}
STEPS: dict[str, tuple[Any, ...]] = {
    "before-push": (bash("git push -q ../hub.git HEAD:refs/heads/main"),),
    "session-end": (),
    "before-commit": (bash(COMMIT),),
    "before-handoff": (bash("gitgates handoff -m x"),),
}


def every_end(trigger: str) -> str:
    commands = {"passes": "true", "slow": "sleep 20", "missing": "no-such-program-here"}
    return "".join(
        f'[[advice]]\ntitle = "{name}"\nhook_command = "{commands.get(name, "false")}"\n'
        f'hook_trigger = "{trigger}"\nhook_on_failure = "{name if name in HOWS else "warn"}"\n'
        "hook_timeout = 1\n" + ('rig = "other"\n' if name == "other" else "")
        for name in (*ENDS, "other")
    )


HOWS = ("block", "warn", "ignore")


@pytest.mark.samples(1)
@pytest.mark.parametrize("trigger", STEPS)
def test_every_end_at_every_moment(tmp_path: Path, trigger: str) -> None:
    scene = Advised(tmp_path, "breaker = { prompt = 1, session = 9 }\n" + every_end(trigger))
    if trigger in ("before-commit", "before-push"):
        scene.with_git_hooks()
    scene.repo.git("init", "-q", "--bare", "../hub.git")
    before = scene.commits()
    run = scene.start(
        *([work(scene)] if trigger == "before-commit" else []), *STEPS[trigger], "1", "2"
    )
    ledger = scene.path / ".git/gitgates/ledger.jsonl"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    entries = [json.loads(line) for line in lines] or scene.journal(run.session)
    found = [(e["id"], e["status"]) for e in entries if e["what"] == "advice"]
    assert found[: len(ENDS)] == [*ENDS.items()]
    told = run.told_ever() + run.person
    assert "`advice:block` failed" in told or "advice:block    failed" in told
    assert "timed out (limit 1 s)" in told or "limit 1 s" in told
    assert "advice:other" not in told
    # What blocks has blocked.
    assert scene.commits() == before
    assert not list((tmp_path / "hub.git/refs/heads").iterdir())
    assert not (scene.path / ".git/gitgates/messages.jsonl").exists()
