"""Whom a command speaks for: the agent whose shell command it is in, and nobody else."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo

from gitgates.errors import StateError, UsageError
from gitgates.git.repo import Repo as Repository
from gitgates.git.repo import find_repo
from gitgates.policies.tokens import digest_of
from gitgates.review.called import CALLED, CALLED_EXACTLY, MENTIONED, calls, fit
from gitgates.review.caller import Call, Caller, find_caller, find_told
from gitgates.review.shell_commands import commands
from gitgates.store.log import Journal, session_journal

DONE = ("review", "done")
STATUS = ("review", "status")
OF_AGENT = {"CLAUDECODE": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "gitgates review done",
        "cd /x && .venv/bin/gitgates review done 2>&1 | tail -3",
        "python3 -I -m gitgates review done > out.txt 2>/dev/null",
        "GITGATES_SKIP=a timeout 5 uv run gitgates review done",
        "$VENV/bin/gitgates review 'done'",
        "gitgates review status; gitgates review done",
        "gitgates review status\ngitgates review done\n",
        "gitgates review \\\n  done # done with it",
        "gitgates review done&>/dev/null &",
        "(gitgates review done)",
        "{ gitgates review done; }",
        "if gitgates review done; then true; fi",
        'echo "$(gitgates review done)"',
        "diff <(gitgates review done) x",
        "x=`gitgates review done`",
        "bash -lc 'gitgates review done'",
        "sh -c \"bash -c 'gitgates review done'\"",
        "eval 'gitgates review done'",
        "cat <<'EOF' && gitgates review done\nit's \"odd (here\nEOF\n",
        "cat <<-EOF\n\tgitgates\n\tEOF\ngitgates review done",
        "gitgates\treview  done\r",
        'git commit -m "a: b" && gitgates review done',
    ],
)
def test_a_shell_command_that_calls_it(text: str) -> None:
    assert fit(text, DONE) == CALLED_EXACTLY
    assert fit(text, ("review", "post")) == 0


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("done --summary 'a b'", ("done", "--summary", "a b")),
        ('done --summary "a \\"b\\" \\$c"', ("done", "--summary", 'a "b" $c')),
        ("done --summary 'it'\\''s'", ("done", "--summary", "it's")),
        ("done --summary=a\\ b", ("done", "--summary=a b")),
        ("done --summary ''", ("done", "--summary", "")),
        ("done --summary 'ä\n🙂'", ("done", "--summary", "ä\n🙂")),
        ("", ()),
        # What is written down of a token need not be the token.
        ("post --token … --decision ISSUES", ("post", "--token", "abc", "--decision", "ISSUES")),
        ("post --token=… --decision ISSUES", ("post", "--token=abc", "--decision", "ISSUES")),
    ],
)
def test_the_arguments_are_compared(text: str, args: tuple[str, ...]) -> None:
    assert fit(f"gitgates review {text}", ("review", *args)) == CALLED_EXACTLY
    assert fit(f"gitgates review {text}", ("review", *args, "more")) == 0


POST = ("review", "post", "--token", "a-1_b", "--decision", "ISSUES")


@pytest.mark.parametrize(
    "token", ["--token …", "--token ***", "--token '***'", "--token \\\n  …", '--token "$TOKEN"']
)
def test_all_but_the_token_is_compared(token: str) -> None:
    """Three stars, as a journal had them, are a pattern to the shell: not to us."""
    assert fit(f"gitgates review post {token} --decision ISSUES", POST) == CALLED_EXACTLY
    assert fit(f"gitgates review post {token} --decision COMPLETE", POST) == 0
    equal = ("review", "post", "--token=a-1_b", "--decision", "ISSUES")
    text = f"gitgates review post {token.replace('--token ', '--token=')} --decision ISSUES"
    assert fit(text, equal) == (0 if "\n" in token else CALLED_EXACTLY)
    assert fit(text, (*equal[:-1], "COMPLETE")) == 0


@pytest.mark.parametrize("sign", ["…", "***"])
def test_a_token_that_a_text_speaks_of(sign: str) -> None:
    text = (
        f"gitgates review post --summary 'with --token {sign}, and --token={sign}.' --token {sign}"
    )
    said = "with --token a-1_b, and --token=a-1_b."
    args = ("review", "post", "--summary", said, "--token", "a-1_b")
    assert fit(text, args) == CALLED_EXACTLY
    assert fit(text, (*args[:3], "with another --token a-1_b", *args[4:])) == 0


@pytest.mark.parametrize(
    "text",
    [
        "gitgates review done --summary \"$(cat <<'EOF'\nit's \"odd (here\nEOF\n)\" && echo",
        'gitgates review done --summary "for $USER"',
        "gitgates review done --summary `date`",
        "gitgates review done --summary $'a\\'b'",
        "gitgates review done --summary *.md",
        "gitgates review done --summary ~/x",
        "gitgates review done --summary 'the end is missing",
        "gitgates review done --summary " + "x" * 9000,
    ],
)
def test_what_only_the_shell_knows_is_not_compared(text: str) -> None:
    assert fit(text[:8192], (*DONE, "--summary", "whatever it is")) == CALLED
    assert fit(text[:8192], STATUS) == 0


@pytest.mark.parametrize(
    "text",
    [
        "echo gitgates review done",
        "python3 -c \"subprocess.run(['gitgates', 'review', 'done'])\"",
        "bash <<EOF\ngitgates review done\nEOF",
        'f() { gitgates "$@"; }; : gitgates review done',
    ],
)
def test_a_shell_command_that_mentions_it(text: str) -> None:
    assert fit(text, DONE) in (MENTIONED, CALLED_EXACTLY)
    assert fit(text, STATUS) <= MENTIONED


@pytest.mark.parametrize(
    "text",
    ["", "true", "gitgates", "gitgates review", "gitgates review done x", "xgitgates review done"],
)
def test_a_shell_command_that_does_not_call_it(text: str) -> None:
    assert fit(text, DONE) == 0


def test_how_often_a_shell_command_calls_it() -> None:
    text = "gitgates review status && (gitgates review status); gitgates review done"
    assert (calls(text, STATUS), calls(text, DONE), calls("true", DONE)) == (2, 1, 1)


def test_no_text_is_too_odd_for_the_reader() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        text = "".join(chance.choice("ab '\"\\$`(){}<>|&;#\n-~*") for _ in range(40))
        commands(text)
    for text in ("(" * 9000, "$(" * 9000, "`" * 9001, '"$(' * 5000, "<<" * 5000, "eval " * 5000):
        commands(text)


def test_a_token_that_stands_anywhere() -> None:
    token = "0123456789abcdef" * 2
    args = ("review", "post", "--summary", f"mine is {token}.", "--token", token)
    for shown in ("…", token):
        text = f"# {shown}\ngitgates review post --summary 'mine is {shown}.' --token {shown}"
        assert fit(text, args) == CALLED_EXACTLY
    assert fit(text, (*args[:3], "mine is … too.", *args[4:])) == 0


class Here:
    """A repository with sessions, and commands that are called there."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.where: Repository = find_repo(str(repo.path), {})

    def journal(self, session: str) -> Journal:
        return session_journal(self.where.state_abs, session)

    def see(self, session: str, text: str, command_id: str = "t1", agent: str = "") -> None:
        fact = {"what": "command", "id": command_id, "agent": agent, "text": text}
        self.journal(session).append({**fact, "agent_type": "reviewer" if agent else ""})

    def hand(self, session: str, agent: str) -> None:
        """Hand a token to an agent: its name, with `of` before it."""
        fact = {"what": "token", "agent": agent, "digest": digest_of(f"of {agent}")}
        self.journal(session).append(fact)

    def call(self, *args: str, env: dict[str, str] | None = None, **named: Any) -> Caller:
        return find_caller(self.where, env or {}, Call(argv=("gitgates", *args), **named))

    def refuse(self, *args: str, env: dict[str, str] | None = None, **named: Any) -> str:
        before = [self.journal(one).read() for one in ("s1", "s2")]
        with pytest.raises(UsageError) as caught:
            self.call(*args, env=env, **named)
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
def test_the_agent_whose_command_was_seen(here: Here, env: dict[str, str]) -> None:
    here.see("s2", "gitgates review done", agent="a1")
    found = here.call(*DONE, env=env)
    assert whose(found) == ("s2", "a1", True)
    assert (found.agent_type, found.seen_id) == ("reviewer", "t1")
    assert [one["what"] for one in here.journal("s2").read()][-1] == "command-used"
    assert len(found.journals) == 1
    assert found.evidence.requests == ("do s2",)


def test_two_agents_in_turn(here: Here) -> None:
    here.see("s1", "gitgates review done", "t1")
    assert whose(here.call(*DONE))[0] == "s1"
    here.see("s2", "gitgates review done", "t2")
    assert whose(here.call(*DONE))[0] == "s2"
    here.see("s2", "gitgates review done", "t3", agent="a1")
    assert whose(here.call(*DONE))[:2] == ("s2", "a1")


def test_two_agents_at_once(here: Here) -> None:
    here.see("s1", "gitgates review done")
    here.see("s2", "gitgates review done", agent="a1")
    assert here.refuse(*DONE, env=OF_AGENT) == (
        "more than one agent is running this very command: session s1, main thread; session s2, "
        "agent a1\n"
        "  Nothing was done. Run it again with --session ID, or in other words, such as another "
        "text: what no other agent runs is yours."
    )
    assert whose(here.call(*DONE, env=env_of("s2"))) == ("s2", "a1", True)


def test_two_agents_of_one_session_at_once(here: Here) -> None:
    here.see("s1", "gitgates review status")
    here.see("s1", "gitgates review status", "t2", agent="a1")
    said = here.refuse(*STATUS, env=env_of("s1"))
    assert "session s1, main thread; session s1, agent a1" in said
    assert "Run it again with --session s1, or in other words" in said
    here.see("s1", "gitgates review status --session s1", "t9", agent="a1")
    assert whose(here.call(*STATUS, "--session", "s1", session="s1"))[1] == "a1"
    for agent in ("", "a1"):
        here.see("s1", "gitgates review x --session s1", f"x{agent}", agent=agent)
    said = here.refuse("review", "x", "--session", "s1", session="s1")
    assert "Run it again in other words, such as another text" in said
    assert whose(here.call(*STATUS, agent="a1"))[:2] == ("s1", "a1")
    here.see("s1", "gitgates review status", "t3", agent="a1")
    assert whose(here.call(*STATUS, any_agent=True))[0] == "s1"


def test_two_agents_of_one_type_at_once(here: Here) -> None:
    for number in (1, 2):
        here.see("s1", "gitgates review weakened", f"t{number}", agent=f"a{number}")
    args = ("review", "weakened")
    assert "agent a1; session s1, agent a2" in here.refuse(*args)
    found = [here.call(*args, any_of_type=True) for _ in range(2)]
    assert {one.agent for one in found} == {"a1", "a2"}
    assert {one.agent_type for one in found} == {"reviewer"}
    for session in ("s1", "s2"):
        here.see(session, "gitgates review weakened", "t3", agent="a3")
    assert "more than one agent" in here.refuse(*args, any_of_type=True)


@pytest.mark.parametrize("sign", ["…", "***"])
def test_a_token_tells_who_it_is(here: Here, sign: str) -> None:
    for agent in ("a1", "a2"):
        here.hand("s1", agent)
    args = ("review", "post", "--token", "of a2", "--decision", "COMPLETE")
    for agent in ("", "a1", "a2", "a3"):
        text = f"gitgates review post --token {sign} --decision COMPLETE"
        here.see("s1", text, f"t{agent}", agent=agent)
    assert "more than one agent" in here.refuse(*args)
    assert "more than one agent" in here.refuse(*args, token="another")
    found = here.call(*args, token="of a2")
    assert (found.agent, found.is_certain) == ("a2", True)
    # What is posted with another one is another call, and of another agent.
    found = here.call(*args[:3], "of a1", *args[4:], token="of a1")
    assert (found.agent, found.is_certain) == ("a1", True)


def test_a_token_that_was_handed_out_in_another_worktree(here: Here, tmp_path: Path) -> None:
    here.repo.write("a", "a")
    here.repo.commit_all("first")
    here.repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Here(Repo(tmp_path / "linked"))
    linked.hand("s1", "a2")
    for agent in ("a1", "a2", "a3"):
        here.see("s1", "gitgates review post --token …", f"t{agent}", agent=agent)
    found = here.call("review", "post", "--token", "of a2", token="of a2")
    assert (found.agent, found.is_certain) == ("a2", True)


def test_a_command_that_has_posted_posts_no_more(here: Here) -> None:
    """What a worker posted, whatever it took for a token, is not in the reviewer's way."""
    args = ("review", "post", "--token")
    here.see("s1", "gitgates review post --token …", "t1")
    assert whose(here.call(*args, "TOKEN", token="TOKEN"))[1] == ""
    here.see("s1", "gitgates review post --token …", "t2", agent="a1")
    found = here.call(*args, "mine", token="mine")
    assert (found.agent, found.is_certain) == ("a1", True)


def test_how_certain_it_is(here: Here) -> None:
    here.see("s1", "grep -r 'gitgates review done'")
    found = here.call(*DONE, env=env_of("s1"))
    assert (found.seen_id, found.is_certain) == ("t1", False)
    here.see("s1", "for i in 1 2; do gitgates review done; done", "t2")
    assert [here.call(*DONE).is_certain for _ in range(2)] == [True, False]
    assert not here.call("review", "x", env=env_of("s1")).is_certain


@pytest.mark.parametrize("named", [{}, {"session": "s1"}])
def test_a_run_of_ours_is_no_person(here: Here, named: dict[str, str]) -> None:
    """A gate, or an opinion: nothing tells any more whose it is, and who is gone has started it."""
    Path(here.journal("s2").path_abs).unlink()
    env = {"GITGATES_ACTIVE": "1 pre-commit /nowhere"}
    assert whose(here.call(*DONE, env=env, **named)) == ("s1", "", True)


def test_an_exact_call_goes_before_others(here: Here) -> None:
    here.see("s1", 'gitgates review done --summary "$(date)"')
    here.see("s2", "gitgates review done --summary x")
    assert whose(here.call(*DONE, "--summary", "x"))[0] == "s2"
    here.see("s2", "gitgates review done --summary x", "t3")
    assert whose(here.call(*DONE, "--summary", "today"))[0] == "s1"


def test_one_command_may_call_more_than_once(here: Here) -> None:
    here.see("s1", "for i in 1 2; do gitgates review status; done; gitgates review done")
    for args in (STATUS, STATUS, DONE):
        assert whose(here.call(*args)) == ("s1", "", True)
    here.see("s2", 'gitgates review done "$x"', "t2")
    # What was found before is not taken for a new one, where there is another.
    assert whose(here.call(*DONE, "x"))[0] == "s2"


def test_what_was_told_apart_before_tells_nothing(here: Here) -> None:
    for session in ("s1", "s2"):
        here.see(session, "gitgates review status", session)
        here.call(*STATUS)
    assert here.refuse(*STATUS).startswith("more than one session has been here")
    assert whose(here.call(*STATUS, env=env_of("s2")))[0] == "s2"


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_a_turn_that_has_ended(here: Here, event: str) -> None:
    here.see("s1", "gitgates review done")
    here.journal("s1").append({"what": "event", "event": event, "key": "k"})
    assert "more than one session" in here.refuse(*DONE)


def test_a_command_of_long_ago(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here.see("s1", "gitgates review done")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 599)
    assert find_told(here.where, {}, Call(argv=("gitgates", *DONE)))
    here.see("s2", "gitgates review done")
    os.utime(here.journal("s2").path_abs, (now + 599, now + 599))
    monkeypatch.setattr(time, "time", lambda: now + 602)
    assert whose(here.call(*DONE))[0] == "s2"
    monkeypatch.setattr(time, "time", lambda: now + 5000)
    assert "1 hour ago  do s1" in here.refuse(*DONE)


def test_a_mere_mention_makes_no_agent_of_a_person(here: Here) -> None:
    here.see("s1", "python3 x.py 'gitgates review done'")
    assert "more than one session" in here.refuse(*DONE)
    assert whose(here.call(*DONE, env=OF_AGENT)) == ("s1", "", True)


@pytest.mark.parametrize("text", ["gitgates review done", "./x 'gitgates review done'"])
def test_what_is_not_certain_does_not_go_before_the_environment(here: Here, text: str) -> None:
    here.see("s1", text)
    assert whose(here.call(*DONE, env=OF_AGENT))[0] == "s1"
    assert whose(here.call(*DONE, env=env_of("s2"))) == ("s2", "", True)
    assert whose(here.call(*DONE, env=env_of("s1")))[0] == "s1"


def test_the_session_of_the_environment(here: Here) -> None:
    assert whose(here.call(*DONE, env=env_of("s2"))) == ("s2", "", True)
    with pytest.raises(UsageError, match="session `s9` has no journal here"):
        here.call(*DONE, env=env_of("s9"))


def test_a_person_names_a_session(here: Here) -> None:
    assert here.refuse(*DONE) == (
        f"more than one session has been here: {here.where.root_abs}\n"
        "  Name one of them: --session ID\n"
        "  s2  just now  do s2\n"
        "  s1  just now  do s1"
    )
    assert whose(here.call(*DONE, session="s1")) == ("s1", "", False)
    assert whose(here.call(*DONE, session="s1", agent="a1")) == ("s1", "a1", False)
    assert "session `s9` has no journal" in here.refuse(*DONE, session="s9")


def test_a_session_is_named_as_its_host_calls_it(here: Here) -> None:
    here.journal("s/3").append({"what": "prompt", "text": "x"})
    found = here.call(*DONE, session="s/3")
    assert found.session.startswith("s_3.")
    assert here.call(*DONE, session=found.session).session == found.session
    assert here.call(*DONE, env=env_of("s/3")).session == found.session


def test_the_only_session(repo: Repo) -> None:
    here = Here(repo)
    assert here.refuse(*DONE) == (
        f"no session has been here: {here.where.root_abs}\n"
        "  Is the agent's hook installed? gitgates install-hooks --agent claude"
    )
    here.journal("s1").append({"what": "prompt", "text": "x"})
    assert whose(here.call(*DONE)) == ("s1", "", False)
    assert whose(here.call(*DONE, env=OF_AGENT)) == ("s1", "", True)


@pytest.mark.parametrize("how", ["seen", "environment"])
def test_an_agent_does_not_speak_for_another(here: Here, how: str) -> None:
    args = (*DONE, "--session", "s2")
    if how == "seen":
        here.see("s1", "gitgates review done --session s2")
    said = here.refuse(*args, session="s2", env=env_of("s1") if how == "environment" else {})
    assert said == (
        "this command is run by an agent of session s1, and an agent speaks only for itself: "
        "--session s2 is somebody else\n"
        "  Leave --session s2 out, or have a person run it, in a terminal outside of the agent."
    )
    assert whose(here.call(*DONE, session="s1", env=env_of("s1")))[0] == "s1"


def test_an_agent_names_itself(here: Here) -> None:
    for session in ("s1", "s2"):
        here.see(session, "gitgates review done --session s2", session)
    assert whose(here.call(*DONE, "--session", "s2", session="s2")) == ("s2", "", True)


def test_a_prompt_that_would_command_the_terminal(here: Here) -> None:
    here.journal("s2").append({"what": "prompt", "text": "\x1b[2Jlong\n" + "word " * 50})
    assert "s2  just now  long word word" in (said := here.refuse(*DONE))
    assert "\x1b" not in said
    assert max(map(len, said.splitlines()[2:])) < 90


def test_in_another_worktree(here: Here, tmp_path: Path) -> None:
    here.repo.write("a", "a")
    here.repo.commit_all("first")
    here.repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    here.see("s1", f"cd {tmp_path}/linked && gitgates review done")
    linked = Here(Repo(tmp_path / "linked"))
    found = linked.call(*DONE)
    assert whose(found) == ("s1", "", True)
    assert [one.path_abs for one in found.journals] == [
        linked.journal("s1").path_abs,
        here.journal("s1").path_abs,
    ]
    assert (found.evidence.requests, found.whole.requests) == ((), ("do s1",))
    here.journal("s1").append({"what": "event", "event": "Stop", "key": "k"})
    assert linked.refuse(*DONE).startswith("no session has been here")


def test_the_newest_wish_of_all_worktrees_counts(here: Here, tmp_path: Path) -> None:
    here.repo.write("a", "a")
    here.repo.commit_all("first")
    here.repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Here(Repo(tmp_path / "linked"))
    here.journal("s1").append({"what": "review-on"}, {"what": "token", "agent": "a", "digest": "d"})
    linked.journal("s1").append({"what": "decision", "decision": "COMPLETE", "counts": True})
    assert here.call(*DONE, session="s1").whole.strict
    whole = linked.call(*DONE, session="s1").whole
    assert (whole.strict, [one.agent for one in whole.tokens]) == (True, ["a"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_journal_that_cannot_be_written(here: Here) -> None:
    here.see("s1", "gitgates review done")
    Path(here.journal("s1").path_abs).chmod(0o400)
    with pytest.raises(StateError, match=r"s1\.jsonl: cannot be written: Permission denied"):
        here.call(*DONE)


def test_journals_that_are_no_journals(here: Here) -> None:
    here.see("s1", "gitgates review done")
    folder = Path(here.journal("s1").path_abs).parent
    (folder / "odd.jsonl").mkdir()
    (folder / "junk.jsonl").write_bytes(b'\xff\0\n{"v": 1, "what": "command", "id": []}\n[]\n')
    assert whose(here.call(*DONE))[0] == "s1"
    with pytest.raises(StateError, match=r"odd\.jsonl: cannot be read: Is a directory"):
        here.call("review", "x", session="odd")
    assert "odd  just now  (cannot be read: Is a directory)" in here.refuse("review", "x")
