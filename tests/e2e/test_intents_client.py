"""Intents in the real client: handshake, gatekeeper, second line, leases, compaction."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from claude import Client, Options, Run, Turn, agent, bash, read, write
from others import Call
from scene import Scene
from terminal_support import on_terminal

FILE = ".orchestration/active_intents.yaml"
INTENTS = """\
active_intents:
  - id: INT-001
    title: Limit the rate
    status: IN_PROGRESS
    owned_scope: ["api/**"]
    acceptance_criteria: [ANSWERS-429]
  - id: INT-002
    title: Sort the list
    status: IN_PROGRESS
    owned_scope: ["web/**", "migrations/**"]
"""
OPTIONAL = "[intents]\n"
REQUIRED = "[intents]\nrequired = true\n"
LIMIT_S = 30.0
REQUEST = "gitgates intent scope-expansion-request INT-001"


def scene_in(folder: Path, config: str = REQUIRED) -> Scene:
    """Return a repository with intents, and hooks for that."""
    scene = Scene(folder, config)
    scene.repo.write(FILE, INTENTS)
    scene.repo.write("web/list.py", "one\n")
    scene.commit()
    return scene


def select(name: str = "INT-001") -> Call:
    return bash(f"gitgates intent select {name}")


def wait_for(name: str) -> Call:
    return bash(f"until test -e {name}; do sleep 0.05; done")


def decisions(run: Run) -> list[str]:
    """Return what was decided of tools, where anything was."""
    own = [answer.get("hookSpecificOutput", {}) for answer in run.answers("PreToolUse")]
    return [one["permissionDecision"] for one in own if "permissionDecision" in one]


def test_nothing_is_written_before_an_intent_is_selected(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    file = scene.at("api/a.py")
    run = scene.run(
        *(write(file, "1"), bash("echo 1 > api.txt"), bash("cat web/list.py | head -1")),
        *(select(), write(file, "2"), "end"),
    )
    assert "gitgates intent select INT-001" in run.told(0)  # at the start of the session
    for request in (1, 2):
        assert "requires an intent to be selected before anything is written" in run.told(request)
        assert "gitgates intent select INT-002  # Sort the list (web/**" in run.told(request)
    assert "one" in run.told(3)
    assert "<intent_context>" in run.told(4)
    assert "ANSWERS-429" in run.told(4)
    assert decisions(run) == ["deny", "deny"]
    assert file.read_text() == "2"
    assert not scene.at("api.txt").exists()


def test_outside_of_the_scope_a_write_is_denied_until_a_person_approves_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    file = scene.at("web/list.py")
    ask = bash(f"{REQUEST} web/list.py --reason 'the list is limited'")
    run = scene.run(select(), write(file, "2"), ask, "asked")
    assert "web/list.py is outside the scope of INT-001: api/**" in run.told(2)
    assert f"{REQUEST} web/list.py" in run.told(2)
    assert "requested web/list.py for the scope of INT-001" in run.told(3)
    assert file.read_text() == "one\n"
    said = on_terminal(scene.repo, "intent", "approve-scope", "INT-001", "web/list.py")
    assert b"is now in the scope of INT-001" in said
    again = scene.run(
        *(bash("cat web/list.py"), write(file, "2"), "end"), options=Options(resume=run.session)
    )
    assert "ANSWERS-429" in again.told_ever()  # it holds the intent that it held
    assert decisions(again) == []
    assert run.results[-1]["result"] == "asked"


def test_a_shell_command_that_writes_outside_is_caught_after_it_at_the_end_and_at_a_commit(
    tmp_path: Path,
) -> None:
    scene = scene_in(tmp_path)
    scene.repo.shim("pre-commit")
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    run = scene.run(
        *(select(), bash("echo 2 > web/list.py"), "1"),
        *(bash("git commit -qam all"), bash("git checkout web/list.py"), "2"),
    )
    outside = "outside the scope of INT-001: web/list.py"
    assert f"This command has changed files {outside}" in run.told(2)
    assert f"This work has changed files {outside}" in run.told(3)
    assert f"these files are {outside}" in run.told(4)
    assert [answer["decision"] for answer in run.answers("Stop")] == ["block"]
    assert run.results[-1]["result"] == "2"
    assert scene.at("web/list.py").read_text() == "one\n"
    assert len(scene.repo.git("log", "--format=%h").split()) == 2


@pytest.mark.nightly
def test_a_command_that_fails_is_compared_too(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(select(), bash("echo 2 > web/list.py; exit 3"), bash("git checkout ."), "end")
    assert "has changed files outside the scope of INT-001: web/list.py" in run.told(2)


@pytest.mark.nightly
def test_of_two_sessions_one_gets_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    (tmp_path / "other").mkdir()
    other = Client(tmp_path / "other")
    first: list[Turn] = [select(), bash("touch ../selected"), wait_for("../tried"), "end"]
    with ThreadPoolExecutor() as pool:
        running = pool.submit(scene.client.run, first, cwd=scene.path)
        until = time.monotonic() + LIMIT_S
        while not (tmp_path / "selected").exists() and time.monotonic() < until:
            time.sleep(0.05)
        second = other.run(
            [select(), select("INT-002"), bash("touch ../tried"), "end"], cwd=scene.path
        )
        holder = running.result().session
    told = second.told(1)
    assert f"INT-001 is held by session {holder} until 20" in told
    assert "Wait, or select another one:" in told
    assert "gitgates intent select INT-002  # Sort the list (web/**, migrations/**)" in told
    assert f"INT-002 is held by session {second.session} now." in second.told(2)
    third = other.run([select(), "end"], cwd=scene.path)  # both have ended
    assert f"INT-001 is held by session {third.session} now." in third.told(1)


@pytest.mark.nightly
def test_of_two_sub_agents_of_a_session_one_gets_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, OPTIONAL)
    run = scene.run(
        *(agent("ONE", background=True), wait_for("../selected"), agent("TWO"), "end", "end"),
        agents={
            "ONE": [select(), bash("touch ../selected"), wait_for("../tried"), "DONE"],
            "TWO": [
                *(select(), write(scene.at("api/a.py"), "1"), select("INT-002")),
                *(write(scene.at("api/a.py"), "1"), bash("touch ../tried"), "DONE"),
            ],
        },
    )
    assert "INT-001 is held by sub-agent " in run.told(1, "agent ONE")
    assert "INT-001 is held by sub-agent " in run.told(1, "agent TWO")
    assert f" of session {run.session} until 20" in run.told(1, "agent TWO")
    assert "INT-002 is held by sub-agent " in run.told(3, "agent TWO")
    assert "api/a.py is outside the scope of INT-002" in run.told(4, "agent TWO")


@pytest.mark.nightly
def test_after_a_compaction_the_context_is_there_again(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(select(), "one", "two", prompts=("a", "/compact", "b"))
    last = run.asked()[-1]
    assert "ANSWERS-429" in str(last)
    assert "You hold this intent" in str(last)
    assert [one["what"] for one in scene.journal(run.session)].count("intent-context") == 1


@pytest.mark.nightly
def test_a_person_is_asked_and_where_there_is_none_it_is_denied(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, OPTIONAL + 'ask = ["migrations/**"]\n')
    run = scene.run(write(scene.at("migrations/1.sql"), "1"), "end")
    assert "a person must permit changes to migrations/1.sql" in run.told(1)
    assert "this session has no person to ask" in run.told(1)
    assert decisions(run) == ["deny"]
    assert not scene.at("migrations/1.sql").exists()


@pytest.mark.nightly
def test_a_headless_run_is_held_to_its_intent(tmp_path: Path) -> None:
    gates = '[gates.check]\ncommand = "true"\n[hooks.headless]\ngates = ["check"]\n'
    skip = '[headless]\nagent_args = ["--dangerously-skip-permissions"]\n'
    scene = scene_in(tmp_path, gates + REQUIRED + skip)
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    sweep = bash("mkdir api; echo 1 > api/a.py; echo 2 > web/list.py")
    run = scene.run(
        *(sweep, select(), sweep, "done", bash("git checkout web"), "undone"),
        options=Options(command=("gitgates", "headless", "limit the rate"), limit_s=90.0),
    )
    assert run.end["exit_status"] == 0, run.said
    assert "requires an intent to be selected" in run.told(1)
    outside = "files outside the scope of"
    assert f"This command has changed {outside} INT-001: web/list.py" in run.told(3)
    assert f"This work has changed {outside} any intent held here: web/list.py" in (run.told(4))
    assert scene.repo.git("show", "--format=", "--name-only") == "api/a.py"


@pytest.mark.nightly
def test_an_agent_that_rewrites_the_rules_gains_nothing(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    scene.repo.shim("pre-commit")
    scene.repo.git("config", "user.name", "Agent")
    scene.repo.git("config", "user.email", "agent@example.invalid")
    file = scene.at("web/list.py")
    code = "import sys; p, *w = sys.argv[1:]; t = open(p).read(); open(p, 'w').write(t.replace(*w))"
    widen = bash(f'python3 -c "{code}" {FILE} "api/**" "**"')
    settings = bash(f'python3 -c "{code}" pyproject.toml "required = true" "required = false"')
    run = scene.run(
        *(select(), widen, write(file, "2"), bash("echo 2 > web/list.py"), settings),
        *(bash("git commit -qam all"), bash("gitgates intent release"), write(file, "3")),
        *(select(), "1", bash("git checkout ."), "2"),
    )
    assert f"outside the scope of INT-001: {FILE}" in run.told(2)
    assert "web/list.py is outside the scope of INT-001: api/**" in run.told(3)
    assert "outside the scope of INT-001: web/list.py" in run.told(4)
    assert "these files are outside the scope of INT-001" in run.told(6)
    assert "requires an intent to be selected" in run.told(8)
    assert run.answers("Stop")[0]["decision"] == "block"
    said = run.answers("Stop")[0]["systemMessage"]
    assert f"{FILE} differs from HEAD at session start, so it does not apply to agents" in said
    assert "table intents" in said
    assert file.read_text() == "one\n"
    scene.repo.write(FILE, INTENTS.replace("api/**", "**"))  # by the person
    on_terminal(scene.repo, "approve", "rules")
    again = scene.run(select(), write(file, "4"), "end")
    assert decisions(again) == []
    assert file.read_text() == "4"


@pytest.mark.nightly
def test_what_cannot_be_decided_is_refused_with_a_way_out(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    break_it = "mv .git/gitgates/sessions .git/gitgates/gone && touch .git/gitgates/sessions"
    scene.add_hook(f"sh -c 'test -d .git/gitgates/gone || {{ {break_it}; }}'", "UserPromptSubmit")
    run = scene.run(write(scene.at("api/a.py"), "1"), read(scene.at("web/list.py")), "end")
    assert decisions(run) == ["deny"]
    assert "GITGATES=0" in run.told(1)
    assert "gitgates approve rules" in run.told(1)
    assert not scene.at("api/a.py").exists()
    assert "one" in run.told(2)  # reading goes on
