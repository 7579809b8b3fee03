"""`gitgates cannot-fix`: an agent says that it cannot fix a failure; which agent, and when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_support import begin as played
from conftest import Repo

from gitgates.drivers.shell_commands import caller_entry
from gitgates.journal.entries import Session, fold
from gitgates.journal.journal import fact_of
from gitgates.store.log import Journal, session_journal

CONFIG = """
[gates.check]
command = "false"
[gates.test]
command = "true"
[hooks.Stop]
gates = ["check"]
"""
NOTED = b"gitgates: noted that `check` cannot be fixed; the reason is reported to the person\n"
HINT = "Run this when a gate keeps you from stopping, or specify the session: --session ID"


@pytest.fixture
def checked(repo: Repo) -> Repo:
    repo.config(CONFIG)
    return repo


def journal_of(repo: Repo, session: str) -> Journal:
    return session_journal(str(repo.path / ".git/gitgates"), session)


def prompt(prompt_id: str) -> dict[str, Any]:
    return {"what": "prompt", "prompt_id": prompt_id}


def round_fact(outcome: str = "blocked", **fields: Any) -> dict[str, Any]:
    fact: dict[str, Any] = {"what": "round", "key": "k", "hook": "Stop", "agent": "", "prompt": "1"}
    fact |= {"gates": "check", "outcome": outcome, "statuses": [["check", "failed"]]}
    return fact | fields


def begin(repo: Repo, session: str, *facts: dict[str, Any]) -> Journal:
    """Write the journal of a session that is kept from stopping, and what happened then."""
    journal = journal_of(repo, session)
    journal.append(prompt("p1"), round_fact(), *facts)
    return journal


def say(
    repo: Repo, *args: str, gate: str = "check", reason: str = "needs a newer libc", env: str = ""
) -> subprocess.CompletedProcess[bytes]:
    session = {"CLAUDE_CODE_SESSION_ID": env} if env else {}
    return repo.gitgates("cannot-fix", gate, "--reason", reason, *args, env=session)


def known(journal: Journal) -> Session:
    return fold(journal.read())


def refused(done: subprocess.CompletedProcess[bytes]) -> str:
    assert (done.returncode, done.stdout) == (64, b"")
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("args", "env"),
    [
        ((), ""),  # the only one that waits
        (("--session", "s1"), ""),
        ((), "s1"),
        (("--session", "s1"), "s1"),
    ],
)
def test_the_session_that_is_meant(checked: Repo, args: tuple[str, ...], env: str) -> None:
    journal = begin(checked, "s1")
    journal_of(checked, "idle").append(prompt("p1"), round_fact("passed"))
    done = say(checked, *args, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, NOTED, b"")
    assert known(journal).reasons_not_to_fix("1") == {"check": "needs a newer libc"}
    assert known(journal_of(checked, "idle")).cannot_fix == ()
    ledger = (checked.path / ".git/gitgates/ledger.jsonl").read_text().splitlines()
    entry = json.loads(ledger[-1])
    assert {key: entry[key] for key in ("what", "gate", "reason", "root")} == {
        "what": "cannot-fix",
        "gate": "check",
        "reason": "needs a newer libc",
        "root": str(checked.path),
    }


def test_an_agent_does_not_speak_for_another_session(checked: Repo) -> None:
    journal = begin(checked, "s1")
    begin(checked, "s2")
    assert refused(say(checked, "--session", "s1", env="s2")) == (
        "gitgates: this command is run by an agent of session s2, and may only act for that "
        "session, not for --session s1"
        "\n"
        "  Omit --session s1, or ask a person to run it in a terminal outside the agent.\n"
    )
    assert known(journal).cannot_fix == ()


def test_the_session_whose_command_it_is(checked: Repo) -> None:
    fact = caller_entry("s2", "a1", "", "t1")
    journals = [begin(checked, "s1"), begin(checked, "s2", fact_of(fact))]
    assert say(checked, f"--caller={fact.nonce}").returncode == 0
    assert [len(known(journal).cannot_fix) for journal in journals] == [0, 1]


def test_from_another_worktree(checked: Repo, tmp_path: Path) -> None:
    checked.git("add", ".")
    checked.git("commit", "-qm", "base")
    checked.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    journal = begin(checked, "s1")
    there = session_journal(str(checked.path / ".git/worktrees/linked/gitgates"), "s1")
    there.append(prompt("p1"), round_fact("passed"))
    done = say(linked, env="s1")
    assert (done.returncode, done.stdout) == (0, NOTED), done.stderr
    assert len(known(journal).cannot_fix) == 1
    assert known(there).cannot_fix == ()


def test_edits_between_do_not_hide_who_waits(checked: Repo) -> None:
    edit = round_fact("passed", hook="PostToolUse", statuses=[])
    journal = begin(checked, "s1", edit)
    assert say(checked).returncode == 0
    assert "1" in {prompt for prompt, _gate, _reason in known(journal).cannot_fix}


@pytest.mark.parametrize(
    "facts",
    [
        (round_fact("passed", statuses=[]),),
        (round_fact("exhausted"),),
        (round_fact(statuses=[["test", "failed"]]),),
    ],
    ids=["passed", "let go", "another gate"],
)
def test_nobody_waits_any_more(checked: Repo, facts: tuple[dict[str, Any], ...]) -> None:
    begin(checked, "s1", *facts)
    assert (
        refused(say(checked))
        == f"gitgates: no session is kept from stopping by `check`\n  {HINT}\n"
    )


def test_two_sessions_wait(checked: Repo) -> None:
    journals = [begin(checked, name) for name in ("s1", "s/2")]
    name = os.path.basename(journals[1].path_abs).removesuffix(".jsonl")
    assert refused(say(checked)) == (
        "gitgates: more than one session is kept from stopping by `check`\n"
        f"  Specify one: --session s1 or --session {name}\n"
    )
    assert [known(journal).cannot_fix for journal in journals] == [(), ()]
    assert say(checked, "--session", name).returncode == 0  # as it was named
    assert say(checked, "--session", "s/2").returncode == 0  # as it is called
    assert [len(known(journal).cannot_fix) for journal in journals] == [0, 2]


def test_a_session_that_is_not_here(checked: Repo) -> None:
    begin(checked, "s1")
    assert refused(say(checked, "--session", "s9")) == (
        "gitgates: session `s9` has no journal here\n  Specify one: --session ID\n  s1  just now\n"
    )
    assert refused(say(checked, env="s9")).startswith("gitgates: session `s9` has no journal")


def test_no_session_at_all(checked: Repo) -> None:
    assert (
        refused(say(checked))
        == f"gitgates: no session is kept from stopping by `check`\n  {HINT}\n"
    )
    assert refused(say(checked, "--session", "s1")) == (
        "gitgates: session `s1` has no journal here\n"
        "  Are the agent's hooks installed? gitgates install-hooks --agent claude\n"
    )
    assert not (checked.path / ".git/gitgates/sessions").exists()


@pytest.mark.parametrize(
    ("gate", "reason", "said"),
    [
        ("chekc", "why", "no gate `chekc` is configured\n  Did you mean `check`?"),
        ("nothing", "why", "no gate `nothing` is configured\n  Known: check, test"),
        (
            "check",
            "",
            '--reason is empty\n  Give a reason, for example: --reason "needs a newer libc"',
        ),
        ("check", " \n\t", "--reason is empty"),
    ],
)
def test_what_makes_no_sense(checked: Repo, gate: str, reason: str, said: str) -> None:
    journal = begin(checked, "s1")
    assert said in refused(say(checked, gate=gate, reason=reason))
    assert known(journal).cannot_fix == ()


def test_no_reason(checked: Repo) -> None:
    assert "--reason is empty" in refused(checked.gitgates("cannot-fix", "check"))


def test_a_reason_is_one_line_of_bounded_length(checked: Repo) -> None:
    journal = begin(checked, "s1")
    assert say(checked, reason="two\n  lines " + "x" * 5000).returncode == 0
    reason = known(journal).reasons_not_to_fix("1")["check"]
    assert reason == ("two lines " + "x" * 5000)[:2000]


@pytest.mark.parametrize(
    ("facts", "prompts"),
    [
        ((), {"1"}),
        ((prompt("p2"),), {"1", "2"}),  # the person has answered, and it goes on from there
        # One of which we did not hear; what is said counts where the agent is kept.
        ((round_fact(prompt="unheard"),), {"1", "unheard"}),
        ((prompt("p2"), round_fact(hook="SubagentStop", agent="a")), {"1", "2"}),
    ],
)
def test_the_prompt_that_it_is_said_for(
    checked: Repo, facts: tuple[dict[str, Any], ...], prompts: set[str]
) -> None:
    journal = begin(checked, "s1", *facts)
    assert say(checked).returncode == 0
    assert {prompt for prompt, _gate, _reason in known(journal).cannot_fix} == prompts


def test_a_folder_where_a_journal_should_be(checked: Repo) -> None:
    journal = begin(checked, "s1")
    (Path(journal.path_abs).parent / "odd.jsonl").mkdir()
    assert say(checked).returncode == 0
    done = say(checked, "--session", "odd")
    assert (done.returncode, done.stdout) == (73, b"")
    assert b"odd.jsonl: cannot be read: Is a directory\n" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_journal_that_cannot_be_written(checked: Repo) -> None:
    journal = begin(checked, "s1")
    Path(journal.path_abs).chmod(0o400)
    done = say(checked)
    assert (done.returncode, done.stdout) == (73, b"")
    assert done.stderr.decode() == (
        f"gitgates: {journal.path_abs}: cannot be written: Permission denied\n"
    )


def test_a_full_disk(checked: Repo) -> None:
    journal = begin(checked, "s1")
    before = Path(journal.path_abs).read_bytes()
    command = f"trap '' XFSZ; ulimit -f 0; exec {sys.executable} -m gitgates cannot-fix check"
    done = checked.ask("sh", "-c", f"{command} --reason x")
    assert (done.returncode, done.stdout) == (73, b"")
    assert done.stderr.decode() == (
        f"gitgates: {journal.path_abs}: cannot be written: File too large\n"
    )
    assert Path(journal.path_abs).read_bytes() == before


def event(repo: Repo, name: str, **fields: Any) -> dict[str, Any]:
    """Fire an event of the agent; return what it is answered."""
    payload = {"session_id": "s1", "cwd": str(repo.path), "prompt_id": "p1"}
    payload |= {"hook_event_name": name} | fields
    done = repo.gitgates("agent-hook", "claude", stdin=json.dumps(payload).encode())
    assert done.returncode == 0
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    return answer


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("heard", [True, False])
def test_from_the_block_to_the_end(checked: Repo, heard: bool) -> None:  # noqa: FBT001 - a case of the table
    checked.git("add", ".")
    checked.git("commit", "-qm", "base")
    if heard:
        assert event(checked, "UserPromptSubmit", prompt="go") == {}
    else:
        assert "hookSpecificOutput" in event(checked, "SessionStart", source="startup")
    checked.write("a.txt", "a\n")
    assert event(checked, "Stop")["decision"] == "block"
    assert say(checked, env="s1").returncode == 0
    answer = event(checked, "Stop", stop_hook_active=True)
    assert "decision" not in answer
    assert "because it reported that it cannot fix this" in answer["systemMessage"]


def test_the_built_in_gate_has_a_way_of_its_own(checked: Repo) -> None:
    checked.config(CONFIG.replace('["check"]', '["check", "review"]'))
    begin(checked, "s1")
    done = say(checked, gate="review")
    assert done.returncode == 64
    assert done.stderr.decode() == (
        "gitgates: `review` is a built-in gate, and cannot be fixed\n"
        '  If no review is needed, say why: gitgates review skip --reason "…"\n'
    )


def test_a_review_that_is_asked_for_beside_it_hides_no_failure(checked: Repo) -> None:
    asked = round_fact(gates="review", statuses=[])
    begin(checked, "s1", asked)
    assert say(checked).returncode == 0


def test_a_turn_that_ends_with_a_question_is_no_pass(repo: Repo) -> None:
    agent = played(repo, CONFIG)
    agent.write("a.py", "x = 1\n")
    done = repo.gitgates(
        "cannot-fix", "--question", "Which\n  one?", env={"CLAUDE_CODE_SESSION_ID": "s1"}
    )
    assert (
        done.stdout == b"gitgates: noted that your turn may end; this is reported to the person\n"
    )
    answer = agent.stop()
    assert "decision" not in answer
    assert "stop because it has a question: Which one?" in answer["systemMessage"]
    assert agent.outcomes() == ["cannot-fix"]
    agent.prompt("the first")
    assert agent.stop()["decision"] == "block"


def test_a_turn_ends_while_a_command_runs_that_it_waits_for(repo: Repo) -> None:
    agent = played(repo, CONFIG)
    agent.write("a.py", "x = 1\n")
    assert agent.stop()["decision"] == "block"
    assert repo.gitgates("cannot-fix", "--wait").returncode == 0
    runs: Any = {"background_tasks": [{"id": "b1", "type": "shell", "status": "running"}]}
    assert "waits for a command" in agent.stop(again=True, **runs)["systemMessage"]
    assert agent.stop(again=True)["decision"] == "block"


def test_what_cannot_be_fixed_is_not_asked_again_of_a_turn_that_changed_nothing(repo: Repo) -> None:
    agent = played(repo, CONFIG)
    agent.write("a.py", "x = 1\n")
    assert agent.stop()["decision"] == "block"
    assert say(repo).returncode == 0
    assert "decision" not in agent.stop(again=True)
    agent.prompt("Why not?")
    answer = agent.stop()
    assert "decision" not in answer
    assert "needs a newer libc" in answer["systemMessage"]
    agent.prompt("Try again.")
    agent.write("a.py", "x = 2\n")
    assert agent.stop()["decision"] == "block"


@pytest.mark.parametrize(
    "args", [("--question", "a?", "--wait"), ("check", "--wait"), ("--reason", "a")]
)
def test_it_takes_one_report(checked: Repo, args: tuple[str, ...]) -> None:
    begin(checked, "s1")
    assert "give one report" in refused(checked.gitgates("cannot-fix", *args))
