"""Failures from before the session do not count; if that is not known, everything does."""

from __future__ import annotations

import pytest
from agent_support import COUNT, Agent
from conftest import Repo
from session_support import begin

from gitgates.engine.findings.failures import split

# Each line with BAD is a failure of its own.
BY_LINE = f"""
[gates.check]
command = '''{COUNT}; ! grep -n BAD *.py'''
failures = 'BAD \\w+'
baseline = true
[hooks.Stop]
gates = ["check"]
"""
WHOLE = BY_LINE.replace("failures = 'BAD \\w+'\n", "")


def session(repo: Repo, config: str = BY_LINE, old: str = "BAD old\n") -> Agent:
    return begin(repo, config, files={"old.py": old})


def test_only_new_failures_block(repo: Repo) -> None:
    agent = session(repo)
    agent.write("new.py", "BAD new\n")
    reason = agent.stop()["reason"]
    old = "1 not caused by this session, and not yours to fix (existed before)"
    assert (
        f"New in this session:\n- BAD new\n{old}:\n- BAD old\nFull log: .git/gitgates/runs/"
    ) in reason
    assert agent.runs() == 2
    agent.write("new.py", "BAD new\nBAD newer\n")
    reason = agent.stop(again=True)["reason"]
    assert f"New:\n- BAD newer\nUnchanged since attempt 1:\n- BAD new\n{old}.\n" in reason
    assert agent.runs() == 3
    agent.write("new.py", "good\n")
    said = agent.stop(again=True)
    assert "decision" not in said
    assert agent.runs() == 4  # the first snapshot is looked at once
    assert agent.outcomes() == ["blocked", "blocked", "passed"]


def test_old_failures_are_told_once(repo: Repo) -> None:
    agent = session(repo)
    agent.write("new.py", "good\n")
    assert "not caused by this session" in agent.stop()["systemMessage"]
    agent.write("new.py", "better\n")
    assert agent.stop() == {}


def test_the_gates_after_an_excused_one_run(repo: Repo) -> None:
    later = '[gates.later]\ncommand = "echo later fails; false"\n'
    agent = session(repo, later + BY_LINE.replace('["check"]', '["check", "later"]'))
    agent.write("new.py", "good\n")
    reason = agent.stop()["reason"]
    assert "later fails" in reason
    assert agent.runs() == 2


def test_without_a_pattern_everything_counts(repo: Repo) -> None:
    """The same output may be that of a tool that has ended early."""
    agent = session(repo, WHOLE)
    agent.write("new.py", "good\n")
    reason = agent.stop()["reason"]
    assert "count, too: `failures` does not say how to tell them apart" in reason
    assert agent.runs() == 1


def test_a_snapshot_that_was_not_looked_at_in_full_excuses_nothing(repo: Repo) -> None:
    stops = "grep -q STOP *.py && echo '!!! stopping after 1 failures !!!'"
    config = BY_LINE.replace("! grep -n BAD", f"{stops}; ! grep -n BAD")
    agent = session(repo, config, old="BAD old\nSTOP\n")
    agent.write("old.py", "BAD old\n")
    reason = agent.stop()["reason"]
    assert "(on the session's first snapshot, it has not looked at everything: `stopping" in reason


def test_it_looks_at_the_first_snapshot_not_at_head(repo: Repo) -> None:
    agent = session(repo, old="good\n")
    repo.write("dirty.py", "BAD dirty\n")  # in neither HEAD nor this session's snapshot
    late = Agent(repo, "s2")
    late.start()
    late.prompt()
    late.write("new.py", "good\n")
    assert "decision" not in late.stop()
    assert agent.stop()["decision"] == "block"


def test_accepted_failures_do_not_count(repo: Repo) -> None:
    """Neither where they are all, nor beside new ones; they are known by their fingerprints."""
    config = BY_LINE.replace("baseline = true", 'baseline = "file"')
    mark = split(b"BAD old", r"BAD \w+", "check")[0].fingerprint
    repo.write(".gitgates-baseline.json", f'{{"check {mark}": "BAD old", "version": 1}}')
    agent = session(repo, config)
    agent.write("new.py", "good\n")
    assert "decision" not in agent.stop()
    agent.write("new.py", "BAD new\n")
    reason = agent.stop(again=True)["reason"]
    assert "New in this session:\n- BAD new\n1 not caused by this session" in reason
    assert agent.runs() == 2  # never on the first snapshot


def test_a_gate_that_crashes_is_not_covered(repo: Repo) -> None:
    agent = session(repo, BY_LINE.replace("! grep -n BAD *.py", "echo broken; false"))
    agent.write("new.py", "good\n")
    reason = agent.stop()["reason"]
    assert "count, too: no failure is recognised in its output" in reason


def test_a_pass_before_means_that_everything_counts(repo: Repo) -> None:
    agent = session(repo, old="good\n")
    agent.write("new.py", "BAD new\n")
    assert agent.stop()["decision"] == "block"


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ("exit 127", "could not be started"),
        ("kill -9 $$", "was killed"),
    ],
)
def test_where_it_is_not_known_everything_counts(repo: Repo, there: str, why: str) -> None:
    repo.write(".gitignore", "here-only\n")
    repo.write("here-only")
    gate = f"test -f here-only || {there}; grep -n BAD *.py; false"
    agent = session(repo, BY_LINE.replace(f"{COUNT}; ! grep -n BAD *.py", gate))
    agent.write("new.py", "good\n")
    reason = agent.stop()["reason"]
    assert why in reason
    assert (
        "so everything counts. Fix what you have caused; report the rest with cannot-fix "
        "as not yours."
        "\n"
    ) in reason


def test_paths_that_are_given_later_are_compared_as_well(repo: Repo) -> None:
    """A gate that is given paths has not looked at the others at its first failure."""
    repo.write("other.py", "BAD other\n")
    config = BY_LINE.replace("BAD *.py", 'BAD "$@"').replace(
        "baseline", "pass_files = true\nbaseline"
    )
    agent = session(repo, config)
    agent.write("old.py", "BAD old\n# touched\n")
    assert "decision" not in agent.stop()
    agent.prompt()
    agent.write("other.py", "BAD other\n# touched\n")
    assert "decision" not in agent.stop()
    agent.prompt()
    agent.write("other.py", "BAD other\nBAD new\n")
    reason = agent.stop()["reason"]
    assert "New in this session:\n- BAD new\n2 not caused by this session" in reason


def test_paths_that_were_not_there_cannot_have_failed(repo: Repo) -> None:
    files = 'files = ["*.py"]\npass_files = true\n'
    config = BY_LINE.replace("*.py'''", "\"$@\"'''").replace("[hooks", f"{files}[hooks")
    agent = session(repo, config)
    agent.write("new.py", "BAD new\n")
    assert agent.stop()["decision"] == "block"
    assert agent.runs() == 1


# What is recorded need not run again.

ALL = BY_LINE.replace("! grep -n BAD *.py", "! grep -rn BAD . --include=*.py")


def later_session(repo: Repo) -> Agent:
    """Return a session on the present content, with a change of its own."""
    agent = Agent(repo, "later")
    agent.start()
    agent.prompt()
    agent.write("new.py", "BAD new\n")
    return agent


def test_a_recorded_failure_is_the_baseline(repo: Repo) -> None:
    agent = session(repo, ALL)
    agent.write("first.py", "BAD first\n")
    agent.stop()
    assert agent.runs() == 2
    late = later_session(repo)
    reason = late.stop()["reason"]
    assert late.runs() == 1  # not on the first snapshot
    assert "New in this session:\n- BAD new\n2 not caused by this session" in reason
    late.write("new.py", "good\n")
    assert "decision" not in late.stop(again=True)
    assert late.runs() == 2


def test_a_recorded_pass_is_an_empty_baseline(repo: Repo) -> None:
    agent = session(repo, ALL, old="good\n")
    agent.write("first.py", "good\n")
    assert agent.stop() == {}
    late = later_session(repo)
    assert "BAD new" in late.stop()["reason"]
    assert late.runs() == 1


def test_a_baseline_that_was_run_is_recorded_for_other_sessions(repo: Repo) -> None:
    agents = [session(repo, ALL), later_session(repo)]
    assert ["BAD old" in agent.stop()["reason"] for agent in agents] == [True, True]
    assert [agent.runs() for agent in agents] == [2, 1]


def test_a_commit_is_a_baseline(repo: Repo) -> None:
    repo.shim("pre-commit")
    agent = session(repo, ALL + '[hooks.pre-commit]\ngates = ["check"]\n', old="good\n")
    agent.write("first.py", "good\n")
    repo.commit_all("first")
    late = later_session(repo)
    assert late.stop()["decision"] == "block"
    assert late.runs() == 1


@pytest.mark.parametrize("change", ["definition", "environment", "paths"])
def test_what_is_recorded_of_something_else_is_no_baseline(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    config = ALL
    if change == "paths":
        config = config.replace("[hooks", 'files = ["*.py"]\n[hooks')
    agent = session(repo, config)
    agent.write("first.py", "BAD first\n")
    agent.stop()
    if change == "definition":
        config = config.replace("grep -rn", "grep -nr")
        repo.config(config)
    elif change == "environment":
        monkeypatch.setenv("GITGATES_REUSE", "0")
    late = later_session(repo)
    late.write("old.py", "BAD old\nBAD newer\n")
    assert late.stop()["decision"] == "block"
    assert late.runs() == 2
