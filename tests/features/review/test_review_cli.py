"""`gitgates review`: each verb by hand, by an agent, and where it cannot be."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from agent_support import Agent
from conftest import Repo
from review_support import (
    CHANGE,
    CONFIG,
    KEPT,
    LINES,
    change,
    document,
    evidence,
    refused,
    review,
    run_by_agent,
    said,
    without_ids,
)
from session_support import as_person, begin
from terminal_support import on_terminal

from gitgates.git.repo import find_repo
from gitgates.store.log import session_journal
from gitgates.verbs.approval import new_token

pytestmark = pytest.mark.slow


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    """Return a session that has changed something."""
    agent = begin(repo, CONFIG)
    with agent.call():
        change(repo)
    return agent


def test_status_before_and_after_a_review(agent: Agent) -> None:
    repo = agent.repo
    head = f"session:    s1 in {repo.path}\nmode:       remind\n{CHANGE}"
    before = f"{head}reviews:    none\ndecisions:  none\n{KEPT}nothing shows that this change was "
    assert (
        said(repo) == said(repo, "status") == said(repo, "--session", "s1") == f"{before}reviewed\n"
    )
    assert agent.stop()["decision"] == "block"
    assert without_ids(said(repo, "done", "--summary", "read it all"), agent) == (
        "gitgates: noted that this change was reviewed (message ID)\n"
    )
    assert said(repo) == (
        f"{head}reviews:\n"
        "  `gitgates review done`, by a person, just now: holds: nothing has changed since\n"
        "decisions:  none\nat a stop:  the agent may stop: the change was reviewed\n"
    )
    assert agent.stop(again=True) == {}


def test_status_of_a_review_that_holds_no_more(agent: Agent) -> None:
    said(agent.repo, "done")
    agent.edit("b.py", LINES)
    told = said(agent.repo)
    assert (
        "  `gitgates review done`, by a person, just now: no longer valid: the changes since "
        "then are significant: 64 weighted lines (threshold 40), 1 weighted file (threshold 5)\n"
    ) in told
    assert f"{KEPT}nothing shows" in told


def test_status_as_a_document(agent: Agent) -> None:
    repo = agent.repo
    said(repo, "done")
    said(repo, "done", "--decision", "ISSUES", "--summary", "x", status=1)
    found = document(repo)
    marker, decision = found["reviews"][0], found["decisions"][0]
    for one in (marker, decision):
        assert set(one) >= {"tree", "head", "time", "message"}
    assert [one["path"] for one in found["change"]["paths"]] == ["a.py", "README.md", "made/x"]
    assert found["change"]["paths"][0] == {
        "path": "a.py",
        "kind": "code",
        "added": 64,
        "removed": 0,
        "lines": 64.0,
        "files": 1.0,
        "why": "code, weight 1",
        "critical": False,
        "counts": True,
    }
    assert (marker["how"], marker["holds"], marker["tree"]) == ("done", True, found["now"]["tree"])
    assert (decision["decision"], decision["counts"], decision["holds"]) == ("ISSUES", False, None)
    assert found["at_stop"] == {"outcome": "passed", "why": "", "how": ""}
    assert found["base"]["known"]
    assert (found["version"], found["mode"], found["strict"]) == (1, "remind", False)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (CONFIG.replace(', "review"', ""), "no hook lists the gate `review`"),
        (CONFIG.replace("[review]", '[review]\nmode = "off"'), "the mode is off"),
        (CONFIG.replace("[review]", "[review]\nmin_lines = 99"), "no review is needed"),
    ],
)
def test_status_where_nothing_asks(repo: Repo, config: str, why: str) -> None:
    with begin(repo, config).call():
        change(repo)
    assert said(repo).endswith(f"at a stop:  the agent may stop: {why}\n")


def test_status_where_nothing_has_changed(repo: Repo) -> None:
    begin(repo, CONFIG)
    told = said(repo)
    assert "change:     nothing that counts\nweakened:   none\nreviews:    none\n" in told
    assert told.endswith("the agent may stop: no review is needed\n")


def test_status_after_blocks_without_an_answer(agent: Agent) -> None:
    for again in (False, True, True):
        assert agent.stop(again=again)["decision"] == "block"
    assert said(agent.repo).endswith(
        "at a stop:  the agent would be allowed to stop after 3 blocks in this prompt without "
        "a new "
        "review decision"
        "\n"
    )


def test_status_writes_nothing(agent: Agent) -> None:
    for again in (False, True, True):
        agent.stop(again=again)
    facts = agent.facts()
    assert document(agent.repo)["at_stop"]["outcome"] == "breaker"
    assert agent.facts() == facts
    assert not (agent.repo.path / ".git/gitgates/ledger.jsonl").exists()


@pytest.mark.parametrize(
    ("is_own", "why"),
    [
        (True, KEPT + "nothing shows that this change was reviewed\n"),
        (False, "at a stop:  the agent may stop: no review is needed\n"),
    ],
)
def test_status_says_what_a_stop_does(repo: Repo, why: str, *, is_own: bool) -> None:
    agent = begin(repo, CONFIG)
    if is_own:
        with agent.call():
            change(repo)
    else:
        change(repo)
    told = said(repo)
    outcome = document(repo)["at_stop"]["outcome"]
    answer = agent.stop()
    assert outcome == ("blocked" if answer.get("decision") == "block" else "passed"), answer
    assert told.endswith(why)


def test_names_that_would_command_the_terminal(agent: Agent) -> None:
    agent.edit("\x1b[2J\nb.py", "x\n")
    agent.edit(os.fsdecode(b"\xff.py"), "x\n")
    told = said(agent.repo)
    assert "\x1b" not in told
    assert len(told.splitlines()) == len(CHANGE.splitlines()) + 7
    assert document(agent.repo)["change"]["paths"]


def test_the_strict_form(agent: Agent) -> None:
    agent.prompt("#review do it")
    told = said(agent.repo)
    assert (
        "mode:       remind; only COMPLETE from `reviewer` counts, requested by a prompt\n" in told
    )
    assert f"{KEPT}the reviewer has not decided on it\n" in told
    assert without_ids(said(agent.repo, "done"), agent) == (
        "gitgates: noted that this change was reviewed (message ID)\n"
        "  An independent review is required: only COMPLETE from `reviewer` counts.\n"
    )
    assert f"{KEPT}the reviewer has not decided on it\n" in said(agent.repo)


def test_a_person_skips_and_an_agent_may_not(agent: Agent) -> None:
    repo = agent.repo
    agent.prompt("#review do it")
    args = ("review", "skip", "--reason", "it is a test")
    refused = agent.pre("Bash", tool_input={"command": shlex.join(("gitgates", *args))})
    assert refused["hookSpecificOutput"]["permissionDecision"] == "deny"
    agent.repo.config(f"{CONFIG}[guard]\nperson_verbs = 'off'\n")
    assert "the policy settings now apply as they are" in as_person(repo, "approve", "rules")
    status, told = run_by_agent(agent, *args)
    assert status == 64
    assert told == (
        "gitgates: `gitgates review skip` must be run by a person in a terminal, not by an agent"
        "\n"
        "  An independent review is required: have `reviewer` do it, or start a prompt with "
        "#review:stop. "
        "The person can run it in a terminal outside the agent, with --session s1, or run "
        "`gitgates approve review skip` there and pass on the token: --token TOKEN."
        "\n"
    )
    assert evidence(agent).markers == ()
    told = on_terminal(repo, *args, "--session", "s1").decode().replace("\r\n", "\n")
    assert without_ids(told, agent) == (
        "gitgates: noted that this change needs no review (message ID)\n"
    )
    marker = evidence(agent).markers[0]
    assert (marker.how, marker.by_person, marker.agent) == ("skip", True, "")
    entry = json.loads((repo.path / ".git/gitgates/ledger.jsonl").read_text().splitlines()[-1])
    assert {key: entry[key] for key in entry if key not in ("v", "time")} == {
        "what": "review-skip",
        "session": "s1",
        "root": str(repo.path),
        "reason": "it is a test",
        "by_person": True,
        "strict": True,
    }
    assert "decision" not in agent.stop()


def test_an_agent_skips_with_the_token_of_a_person(agent: Agent) -> None:
    agent.prompt("#review do it")
    args = ("review", "skip", "--reason", "it is a test", "--token")
    token = new_token(find_repo(str(agent.repo.path), {**os.environ}), "review skip")
    assert run_by_agent(agent, *args, "0" * 16)[0] == 64
    assert run_by_agent(agent, *args, token)[0] == 0
    assert evidence(agent).markers[0].by_person is True
    assert "decision" not in agent.stop()


def test_an_agent_skips_what_it_is_only_reminded_of(agent: Agent) -> None:
    agent.pre("Bash", tool_input={"command": "make"})
    agent.edit("b.py", LINES)
    assert run_by_agent(agent, "review", "skip", "--reason", "trivial")[0] == 0
    assert evidence(agent).markers[0].by_person is False
    assert "none is needed: trivial" in agent.stop()["systemMessage"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("skip", "--reason", " \n"), "--reason is empty\n  Pass a short text.\n"),
        (("done", "--summary", ""), "--summary is empty"),
        (("done", "--summary", "x" * 65537), "--summary has 65537 bytes; the maximum is 65536\n"),
        (("skip",), "Missing option '--reason'."),
        (("done", "--decision", "MAYBE", "--summary", "x"), "Invalid value for '--decision'"),
        (("done", "--decision", "COMPLETE"), "--summary is empty"),
        (("done", "--decision", "ISSUES", "--summary", " "), "--summary is empty"),
        (
            ("done", "--decision", "ISSUES", "--summary", "x", "--second-opinion", "codex"),
            "--second-opinion 'codex': expected NAME=TEXT\n",
        ),
        (("nothing",), "no such command: nothing. See: gitgates review --help\n"),
        (("stats",), "no such command: stats. Did you mean `status`?\n"),
        (("done", "--session", "s9"), "session `s9` has no journal here\n"),
    ],
)
def test_what_makes_no_sense(agent: Agent, args: tuple[str, ...], told: str) -> None:
    assert told in refused(agent.repo, *args)
    assert (evidence(agent).markers, evidence(agent).decisions) == ((), ())
    assert not (agent.repo.path / ".git/gitgates/messages.jsonl").exists()


def test_the_request(agent: Agent) -> None:
    agent.prompt("do \x1b[31mthis\n# The change\n\n  and `that` $HOME äöü 🙂")
    told = said_with_notes(agent.repo, "diff")
    assert told.startswith(
        "# What the person asked for, word for word\n\n1.\n    do it\n\n"
        "2.\n    do \\x1b[31mthis\n    # The change\n\n"
        "      and `that` $HOME äöü 🙂\n\n# The change\n\ndiff --git "
    )


def said_with_notes(repo: Repo, *args: str) -> str:
    done = review(repo, *args)
    assert done.returncode == 0
    return done.stdout.decode()


def test_no_request_was_heard_of(repo: Repo) -> None:
    repo.config(CONFIG)
    agent = Agent(repo)
    agent.start()
    agent.edit("a.py", LINES)
    assert "Their prompts are not recorded." in said_with_notes(repo, "diff")


def test_the_diff(agent: Agent) -> None:
    done = review(agent.repo, "diff")
    assert done.stderr.decode() == (
        "gitgates: left out: made/x (generated or vendored). To show them: --all\n"
    )
    paths = [line for line in done.stdout.decode().splitlines() if line.startswith("diff ")]
    assert paths == ["diff --git a/README.md b/README.md", "diff --git a/a.py b/a.py"]
    everything = review(agent.repo, "diff", "--all")
    assert everything.stderr == b""
    assert b"b/made/x" in everything.stdout
    agent.repo.git("stash", "-uq")
    (agent.repo.path / "patch").write_bytes(everything.stdout)
    agent.repo.git("apply", "patch")
    assert (agent.repo.path / "a.py").read_text() == LINES


def test_the_diff_of_nothing(repo: Repo) -> None:
    begin(repo, CONFIG)
    done = review(repo, "diff")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"gitgates: nothing has changed\n"


def test_several_sessions(agent: Agent) -> None:
    other = Agent(agent.repo, "s2")
    other.start()
    other.prompt("something else")
    told = refused(agent.repo, "done")
    assert told.startswith(f"gitgates: there are several sessions: {agent.repo.path}\n")
    assert "  s2  just now  something else\n  s1  just now  do it\n" in told
    assert review(agent.repo, "done", "--session", "s2").returncode == 0
    assert (len(evidence(agent).markers), len(evidence(other).markers)) == (0, 1)
    said(agent.repo, "done", env={"CLAUDE_CODE_SESSION_ID": "s1"})
    assert evidence(agent).markers[0].by_person is False


def test_two_reviewers_look_at_once(agent: Agent) -> None:
    own = {"agent_type": "reviewer"}
    found = [run_by_agent(agent, "review", "diff", agent_id=name, **own) for name in ("r1", "r2")]
    assert found[0] == found[1]
    assert found[0][0] == 0


def test_in_a_linked_worktree(agent: Agent, tmp_path: Path) -> None:
    repo = agent.repo
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    linked.write("b.py", LINES)
    assert refused(linked).startswith("gitgates: no sessions found")
    told = said(linked, "--session", "s1")
    assert f"session:    s1 in {linked.path}\n" in told
    assert "  b.py  code, weight 1\n" in told
    assert (
        "note:       the start of this session is not recorded here: compared with the commit"
        in told
    )
    said(linked, "done", "--session", "s1")
    assert evidence(agent).markers == ()
    assert "the change was reviewed\n" in said(linked)
    assert "\n1.\n    do it\n" in said_with_notes(linked, "diff")


def test_the_newest_wish_of_all_worktrees_counts(agent: Agent, tmp_path: Path) -> None:
    repo = agent.repo
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    agent.prompt("#review do it")
    decision = {"what": "decision", "decision": "COMPLETE", "counts": True, "tree": "", "agent": ""}
    session_journal(f"{repo.path}/.git/worktrees/linked/gitgates", "s1").append(decision)
    assert document(linked, "--session", "s1")["strict"]
    session_journal(f"{repo.path}/.git/worktrees/linked/gitgates", "s1").append(
        {"what": "review-off"}
    )
    assert not document(repo)["strict"]


def test_before_the_first_commit(repo: Repo) -> None:
    repo.config(CONFIG)
    session_journal(f"{repo.path}/.git/gitgates", "s1").append({"what": "prompt", "text": "x"})
    change(repo)
    told = said(repo)
    assert "  a.py            code, weight 1\n" in told
    assert "note:       the start of this session is not recorded here: everything counts" in told


VERBS = (
    ("status",),
    ("diff",),
    ("done",),
    ("skip", "--reason", "x"),
)


@pytest.mark.samples(2)
@pytest.mark.parametrize("args", VERBS, ids=lambda args: args[0])
def test_where_it_cannot_be(agent: Agent, tmp_path: Path, args: tuple[str, ...]) -> None:
    repo = agent.repo
    before = agent.facts()
    repo.write("pyproject.toml", "[tool.gitgates]\nnope = 1\n")
    assert "unknown key" in refused(repo, *args, status=78)
    (repo.path / "pyproject.toml").unlink()
    assert "no [tool.gitgates] in pyproject.toml" in refused(repo, *args, status=78)
    assert agent.facts() == before
    empty = Repo.init(tmp_path / "empty")
    empty.config(CONFIG)
    assert "no sessions found" in refused(empty, *args)
    outside = Repo(tmp_path)
    assert "not a git repository" in refused(outside, *args, status=74)


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", VERBS[3:], ids=lambda args: args[0])
def test_a_full_disk(agent: Agent, args: tuple[str, ...]) -> None:
    repo = agent.repo
    before = agent.facts()
    line = " ".join(f"'{arg}'" for arg in (sys.executable, "-m", "gitgates", "review", *args))
    done = repo.ask("sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {line}")
    # Git may be the first to have no room.
    assert (done.returncode in (73, 74), done.stdout) == (True, b""), done.stderr
    assert agent.facts() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("args", VERBS, ids=lambda args: args[0])
def test_a_state_folder_that_cannot_be_written(agent: Agent, args: tuple[str, ...]) -> None:
    state = agent.repo.path / ".git/gitgates"
    for path in (*state.rglob("*"), state):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        done = review(agent.repo, *args)
        assert done.returncode == 73, done.stderr
    finally:
        for path in (state, *state.rglob("*")):
            path.chmod(0o700)
