"""Whom a command speaks for: the agent whose command it says it is, and nobody else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from each_case import each_case

from gitgates.core.errors import StateError, UsageError
from gitgates.drivers.caller import Caller, find_caller, identify
from gitgates.drivers.shell_commands import caller_entry, with_caller
from gitgates.git.repo import Repo as Repository
from gitgates.git.repo import find_repo
from gitgates.journal.journal import fact_of
from gitgates.store.log import Journal, session_journal

OF_AGENT = {"CLAUDECODE": "1"}


@each_case(
    ("text", "wanted"),
    [
        ("gitgates review done", "gitgates review done --caller=N"),
        ("gitgates review done --summary 'a b'", "gitgates review done --caller=N --summary 'a b'"),
        ("gitgates review done\t--token x", "gitgates review done --caller=N\t--token x"),
        ("gitgates review", "gitgates review --caller=N"),
        ("gitgates review --format json", "gitgates review --caller=N --format json"),
        ("gitgates review | head -3", "gitgates review --caller=N | head -3"),
        ("gitgates review status 2>&1", "gitgates review status --caller=N 2>&1"),
        ("gitgates review status; date", "gitgates review status --caller=N; date"),
        ("gitgates review done\ndate", "gitgates review done --caller=N\ndate"),
        ("gitgates cannot-fix check", "gitgates cannot-fix --caller=N check"),
        ("  gitgates   review   diff", "  gitgates   review   diff --caller=N"),
        ("cd /x && gitgates review diff", "cd /x && gitgates review diff --caller=N"),
        ("cd 'a b'&&gitgates review diff", "cd 'a b'&&gitgates review diff --caller=N"),
        ('cd "$X" && gitgates review diff', 'cd "$X" && gitgates review diff --caller=N'),
        ("cd $X/y && gitgates review diff", "cd $X/y && gitgates review diff --caller=N"),
        (".venv/bin/gitgates review diff", ".venv/bin/gitgates review diff --caller=N"),
        # What an agent has copied from before is not of this command.
        ("gitgates review done --caller=M x", "gitgates review done --caller=N x"),
        ("gitgates review --caller=M", "gitgates review --caller=N"),
        ("gitgates cannot-fix --caller=M check", "gitgates cannot-fix --caller=N check"),
    ],
)
def test_a_command_says_whose_it_is(text: str, wanted: str) -> None:
    assert with_caller(text, "N") == wanted


@each_case(
    "text",
    [
        "",
        "true",
        "gitgates",
        "gitgates run Stop",
        "gitgates reviews",
        "gitgates review --help",
        "gitgates review -h",
        "gitgates review 'done'",
        "gitgates review $VERB",
        "gitgates review \\\n  done",
        "gitgates review-x",
        "gitgates cannot-fix-x",
        "xgitgates review done",
        "echo gitgates review done",
        "sh -c 'gitgates review done'",
        "X=1 gitgates review done",
        "cd a b && gitgates review done",
        "cd $(x) && gitgates review done",
        "cd a; gitgates review done",
        "true && gitgates review done",
        "python -m gitgates review done",
        "git commit -m 'gitgates review done'",
    ],
)
def test_other_commands_stay_as_they_are(text: str) -> None:
    assert with_caller(text, "N") is None


def test_one_tool_call_has_one_nonce() -> None:
    """An event may be delivered twice, and to more than one repository."""
    fact = caller_entry("s1", "a1", "reviewer", "t1")
    assert fact == caller_entry("s1", "a1", "reviewer", "t1")
    others = [("s2", "a1", "t1"), ("s1", "a2", "t1"), ("s1", "a1", "t2")]
    found = {caller_entry(session, agent, "", use).nonce for session, agent, use in others}
    assert len(found | {fact.nonce}) == 1 + len(others)
    assert (fact.agent, fact.agent_type) == ("a1", "reviewer")


class Here:
    """A repository with sessions, and commands that are called there."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.where: Repository = find_repo(str(repo.path), {})

    def journal(self, session: str) -> Journal:
        return session_journal(self.where.state_abs, session)

    def see(self, session: str, use: str = "t1", agent: str = "") -> str:
        """Have an agent be about to run a command; return its nonce."""
        fact = caller_entry(session, agent, "reviewer" if agent else "", use)
        self.journal(session).append(fact_of(fact))
        return str(fact.nonce)

    def call(self, env: dict[str, str] | None = None, **named: Any) -> Caller:
        return find_caller(self.where, env or {}, **named)

    def refuse(self, env: dict[str, str] | None = None, **named: Any) -> str:
        before = [self.journal(one).read() for one in ("s1", "s2")]
        with pytest.raises(UsageError) as caught:
            self.call(env, **named)
        assert [self.journal(one).read() for one in ("s1", "s2")] == before
        return str(caught.value)


@pytest.fixture(name="here")
def _here(repo: Repo) -> Here:
    here = Here(repo)
    for session in ("s1", "s2"):
        here.journal(session).append({"what": "prompt", "text": f"do {session}"})
    return here


def env_of(session: str) -> dict[str, str]:
    return {"CLAUDE_CODE_SESSION_ID": session, **OF_AGENT}


def whose(caller: Caller) -> tuple[str, str, bool]:
    return caller.session, caller.agent, caller.by_agent


@pytest.mark.parametrize("env", [{}, OF_AGENT, env_of("s1"), env_of("s2")], ids=str)
def test_the_agent_whose_command_it_is(here: Here, env: dict[str, str]) -> None:
    nonce = here.see("s2", agent="a1")
    found = here.call(env, nonce=nonce)
    assert whose(found) == ("s2", "a1", True)
    assert (found.agent_type, found.is_certain) == ("reviewer", True)
    assert len(found.journals) == 1
    assert [fact.get("text") for fact in found.facts[0]][:1] == ["do s2"]


def test_agents_at_once(here: Here) -> None:
    nonces = [here.see("s1"), here.see("s1", agent="a1"), here.see("s2", agent="a1")]
    found = [whose(here.call(env_of("s1"), nonce=nonce)) for nonce in nonces]
    assert found == [("s1", "", True), ("s1", "a1", True), ("s2", "a1", True)]


@pytest.mark.parametrize("nonce", ["", "guessed"])
def test_a_command_inside_a_script_is_of_its_session(here: Here, nonce: str) -> None:
    here.see("s1", agent="a1")
    found = here.call(env_of("s1"), nonce=nonce)
    assert whose(found) == ("s1", "", True)
    assert (found.agent_type, found.is_certain) == ("", False)
    assert "there are several sessions" in here.refuse(OF_AGENT, nonce=nonce)


@pytest.mark.parametrize("named", [{}, {"session": "s1"}])
def test_a_run_of_ours_is_no_person(here: Here, named: dict[str, str]) -> None:
    """A gate, or an opinion: nothing tells any more whose it is, and who is gone has started it."""
    Path(here.journal("s2").path_abs).unlink()
    env = {"GITGATES_ACTIVE": "1 pre-commit /nowhere"}
    assert whose(here.call(env, **named)) == ("s1", "", True)


def test_the_session_of_the_environment(here: Here) -> None:
    assert whose(here.call(env_of("s2"))) == ("s2", "", True)
    with pytest.raises(UsageError, match="session `s9` has no journal here"):
        here.call(env_of("s9"))


def test_a_person_names_a_session(here: Here) -> None:
    assert here.refuse() == (
        f"there are several sessions: {here.where.root_abs}\n"
        "  Specify one: --session ID\n"
        "  s2  just now  do s2\n"
        "  s1  just now  do s1"
    )
    assert whose(here.call(session="s1")) == ("s1", "", False)
    assert whose(here.call(session="s1", agent="a1")) == ("s1", "a1", False)
    assert "session `s9` has no journal" in here.refuse(session="s9")


def test_a_session_is_named_as_its_host_calls_it(here: Here) -> None:
    here.journal("s/3").append({"what": "prompt", "text": "x"})
    found = here.call(session="s/3")
    assert found.session.startswith("s_3.")
    assert here.call(session=found.session).session == found.session
    assert here.call(env_of("s/3")).session == found.session


def test_a_session_of_long_ago(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 5000)
    assert "1 hour ago  do s1" in here.refuse()


def test_the_only_session(repo: Repo) -> None:
    here = Here(repo)
    assert here.refuse() == (
        f"no sessions found: {here.where.root_abs}\n"
        "  Are the agent's hooks installed? gitgates install-hooks --agent claude"
    )
    here.journal("s1").append({"what": "prompt", "text": "x"})
    assert whose(here.call()) == ("s1", "", False)
    assert whose(here.call(OF_AGENT)) == ("s1", "", True)
    assert identify(here.where, {}) is None


@pytest.mark.parametrize("how", ["nonce", "environment"])
def test_an_agent_does_not_speak_for_another(here: Here, how: str) -> None:
    own = {"nonce": here.see("s1")} if how == "nonce" else {"env": env_of("s1")}
    said = here.refuse(session="s2", **own)
    assert said == (
        "this command is run by an agent of session s1, and may only act for that session, not "
        "for --session s2"
        "\n"
        "  Omit --session s2, or ask a person to run it in a terminal outside the agent."
    )
    assert whose(here.call(session="s1", **own))[0] == "s1"


def test_an_agent_names_itself(here: Here) -> None:
    nonce = here.see("s2", agent="a1")
    assert whose(here.call(session="s2", agent="a1", nonce=nonce)) == ("s2", "a1", True)
    assert "not for --agent a2" in here.refuse(agent="a2", nonce=nonce)


def test_a_prompt_that_would_command_the_terminal(here: Here) -> None:
    here.journal("s2").append({"what": "prompt", "text": "\x1b[2Jlong\n" + "word " * 50})
    assert "s2  just now  long word word" in (said := here.refuse())
    assert "\x1b" not in said
    assert max(map(len, said.splitlines()[2:])) < 90


def test_in_another_worktree(here: Here, tmp_path: Path) -> None:
    here.repo.write("a", "a")
    here.repo.commit_all("first")
    here.repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    nonce = here.see("s1", agent="a1")
    linked = Here(Repo(tmp_path / "linked"))
    found = linked.call(nonce=nonce)
    assert whose(found) == ("s1", "a1", True)
    assert [one.path_abs for one in found.journals] == [
        linked.journal("s1").path_abs,
        here.journal("s1").path_abs,
    ]
    assert [len(facts) for facts in found.facts] == [0, 2]
    assert linked.refuse().startswith("no sessions found")


def test_journals_that_are_no_journals(here: Here) -> None:
    folder = Path(here.journal("s1").path_abs).parent
    (folder / "odd.jsonl").mkdir()
    (folder / "junk.jsonl").write_bytes(b'\xff\0\n{"v": 1, "what": "caller", "nonce": []}\n[]\n')
    assert whose(here.call(nonce=here.see("s1")))[0] == "s1"
    with pytest.raises(StateError, match=r"odd\.jsonl: cannot be read: Is a directory"):
        _ = here.call(session="odd").facts
    assert "odd  just now  (cannot be read: Is a directory)" in here.refuse()
