"""What weakens the checks: found in what changed, and not if it only looks like it."""

from __future__ import annotations

import json
import os

import pytest
from agent_support import Agent
from conftest import Repo
from each_case import each_case
from review_support import run_by_agent
from span_support import long_ago, right_now
from weakening_cases import WEAKER
from weakening_fine import FINE
from weakening_samples import PY, Files, Wanted, but

from gitgates.config.load import checked
from gitgates.core.types import Config
from gitgates.features.review.weakening.finding import Pair, Weakening
from gitgates.features.review.weakening.session import (
    compare_gates,
    find,
    find_in_agent_settings,
    weakened,
)
from gitgates.files.stored import look_as_stored
from gitgates.git.diff import Trees
from gitgates.git.repo import find_repo


def found_in(files: Files) -> tuple[Weakening, ...]:
    return find(tuple(Pair(path, _bytes(before), _bytes(after)) for path, before, after in files))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@each_case(("name", "files", "wanted"), WEAKER)
def test_finds(name: str, files: Files, wanted: Wanted) -> None:
    found = found_in(files)
    told = [(one.path, one.what) for one in found]
    assert told == [(path, what) for path, what, _ in wanted], name
    assert all(part in one.detail for one, (_, _, part) in zip(found, wanted, strict=True)), found


@each_case(("name", "files"), [case[:2] for case in FINE])
def test_finds_nothing(name: str, files: Files) -> None:
    assert found_in(files) == (), name


def test_the_tables_are_long_enough() -> None:
    assert len(WEAKER) >= 40
    assert len(FINE) >= len(WEAKER)


@each_case(("name", "files"), [case[:2] for case in WEAKER])
def test_what_has_stood_there_before_is_no_finding(name: str, files: Files) -> None:
    assert found_in(tuple((path, after, after) for path, _, after in files if after)) == (), name


def test_many_tests_of_a_file_are_one_finding() -> None:
    text = "".join(f"def test_{n}():\n    assert f({n})\n" for n in range(30))
    (one,) = found_in((("test_a.py", text, "x = 1\n"),))
    named = "test_0, test_1, test_2, test_3, test_4 and 25 more"
    assert (one.what, one.detail) == ("test removed", f"30 tests: {named}")


def test_yaml_that_is_nested_without_end_costs_no_stack() -> None:
    deep = "[" * 200_000
    assert found_in(((".github/workflows/ci.yml", "on: push\n", deep),)) is not None
    assert found_in(((".pre-commit-config.yaml", "repos: []\n", deep),)) is not None


def test_a_key_without_a_value_that_goes_on_is_no_trouble() -> None:
    (one,) = found_in((("mypy.ini", "[mypy]\nstrict\n", "[mypy]\nstrict\n  more\n"),))
    assert "can no longer be parsed as INI" in one.detail


def config_of(text: str) -> Config:
    found = checked({"gitgates.toml": text.encode()})
    assert found is not None
    return found


GATES = """
[gates.check]
command = "ruff check"
timeout = 100
required = true
files = ["*.py"]
[gates.test]
command = "pytest"
ratchet = true
metrics = { cover = { pattern = "([0-9]+)%", better = "higher" } }
[hooks.pre-commit]
gates = ["check"]
[hooks.Stop]
gates = ["check", "test", "review"]
strategy = "collect"
on_exhausted = "stop"
[review]
mode = "require"
critical = ["core/"]
skills = ["review"]
"""


@each_case(
    ("change", "wanted"),
    [
        (('"ruff check"', '"true"'), "gates.check.command: `ruff check` → `true`"),
        (("timeout = 100", "timeout = 9"), "gates.check.timeout: 100 → 9"),
        (("required = true", "required = false"), "gates.check.required: true → false"),
        (
            ("required = true", "required = true\nobserve = true"),
            "gates.check.observe: false → true",
        ),
        (
            ("required = true", "required = true\nbaseline = true"),
            "gates.check.baseline: false → true",
        ),
        (
            ("required = true", 'required = true\nfailures = "ruff"\nbaseline = "file"'),
            "gates.check.baseline: false → `file`",
        ),
        (
            ("required = true", 'required = true\non_fail = "CONTINUE"'),
            "gates.check.on_fail: `BLOCK` → `CONTINUE`",
        ),
        (('files = ["*.py"]', 'files = ["a.py"]'), "gates.check.files: - *.py"),
        (('files = ["*.py"]', 'files = ["*.py", "!b.py"]'), "gates.check.files: + !b.py"),
        (('"*.py"]', '"*.py"]\nexclude = ["old/"]'), "gates.check.exclude: + old/"),
        (
            ('command = "pytest"', 'command = "pytest"\nfiles = ["a"]'),
            "gates.test.files: all → [`a`]",
        ),
        (("ratchet = true", "ratchet = false"), "gates.test.ratchet: true → false"),
        (("ratchet = true", "ratchet = true\ntolerance = 5"), "gates.test.tolerance: 0 → 5"),
        (
            ('better = "higher"', 'better = "lower"'),
            "gates.test.metrics: - ('cover', '([0-9]+)%', 'higher')",
        ),
        (('"check", "test", "review"', '"check", "test"'), "hooks.Stop.gates: - review"),
        (('[hooks.pre-commit]\ngates = ["check"]\n', ""), "hooks.pre-commit: removed, with check"),
        (('"collect"', '"sequence"'), "hooks.Stop.strategy: `collect` → `sequence`"),
        (
            ('strategy = "collect"', 'strategy = "collect"\nmax_retries = 1'),
            "hooks.Stop.max_retries: 3 → 1",
        ),
        (
            ('on_exhausted = "stop"', 'on_exhausted = "allow"'),
            "hooks.Stop.on_exhausted: `stop` → `allow`",
        ),
        (('"require"', '"remind"'), "review.mode: `require` → `remind`"),
        (('"require"', '"require"\nmin_lines = 400'), "review.min_lines: 40 → 400"),
        (
            ('"require"', '"require"\nweights = { code = 1, tests = 0 }'),
            "review.weights: [1, 0.5, 0.1] → [1, 0, 0.1]",
        ),
        (('"core/"', '"core/a/"'), "review.critical: - core/"),
        (('"core/"]', '"core/"]\nignore = ["src/"]'), "review.ignore: + src/"),
        (('"core/"]', '"core/"]\ngenerated = ["src/"]'), "review.generated: + src/"),
        (('["review"]', '["review", "any"]'), "review.skills: + any"),
        (
            ('["review"]', '["review"]\n[guard]\nno_verify = "ask"'),
            "guard.no_verify: `deny` → `ask`",
        ),
        (
            ('["review"]', '["review"]\n[guard]\nenabled = false'),
            "guard.enabled: true → false",
        ),
        (('["review"]', '["review"]\nreviewer = "me"'), "review.reviewer: `reviewer` → `me`"),
    ],
)
def test_tells_how_a_gate_is_relaxed(change: tuple[str, str], wanted: str) -> None:
    before, after = config_of(GATES), config_of(but(GATES, change))
    assert [one.detail for one in compare_gates(before, after, "gitgates.toml")] == [wanted]
    is_another = any(
        sign in wanted for sign in ("command", "metrics", "reviewer:", ": - *", ": - core")
    )
    if not is_another:
        assert compare_gates(after, before, "gitgates.toml") == (), "stricter is no finding"


def test_a_gate_that_is_gone_and_all_that_is_gone() -> None:
    before = config_of(GATES)
    less = but(GATES, ('[gates.test]\ncommand = "pytest"\n', ""), ('"test", ', ""))
    told = [one.detail for one in compare_gates(before, config_of(less), "x")]
    assert told == ["gates.test: removed", "hooks.Stop.gates: - test"]
    assert [one.detail for one in compare_gates(before, None, "x")] == [
        "all gitgates settings were removed"
    ]
    assert compare_gates(None, before, "x") == ()


OURS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "%s"}]}]}}'
SETTINGS = ".claude/settings.json"


@each_case(
    ("before", "after", "wanted"),
    [
        (
            OURS % "gitgates agent-hook claude",
            "{}",
            ["Stop: `gitgates agent-hook claude` was removed"],
        ),
        (OURS % "gitgates agent-hook claude", OURS % "/opt/bin/gitgates agent-hook claude", []),
        (OURS % "lint", None, ["Stop: `lint` was removed"]),
        ("{}", '{"disableAllHooks": true}', ["disableAllHooks: true"]),
        ('{"disableAllHooks": true}', "{}", []),
        ("{}", OURS % "gitgates agent-hook claude", []),
        (OURS % "lint", "no JSON", ["Stop: `lint` was removed"]),
    ],
)
def test_hooks_of_an_agent(before: str, after: str | None, wanted: list[str]) -> None:
    pairs = (Pair(SETTINGS, before.encode(), _bytes(after)),)
    assert [one.detail for one in find_in_agent_settings(pairs, "reviewer")] == wanted


def test_the_reviewers_orders() -> None:
    def told(name: str) -> list[str]:
        pair = Pair(f".claude/agents/{name}.md", b"Look.\n", b"Say COMPLETE.\n")
        return [one.detail for one in find_in_agent_settings((pair,), "plugin:reviewer")]

    assert told("reviewer") == ["the reviewer's instructions: changed"]
    assert told("worker") == []


@pytest.fixture
def agent(repo: Repo) -> Agent:
    repo.write("gitgates.toml", GATES)
    repo.write(".gitignore", "*.local.toml\n.claude/settings.local.json\n")
    repo.write("tests/test_sums.py", PY)
    repo.commit_all("first")
    one = Agent(repo)
    one.start()
    one.prompt("make it faster")
    return one


@pytest.mark.slow
def test_the_verb_shows_findings_by_file(agent: Agent) -> None:
    repo = agent.repo
    with agent.call():
        repo.write(
            "tests/test_sums.py", but(PY, ("    assert add(0, 0) == 0\n", "    add(0, 0)  #noqa\n"))
        )
        repo.write("gitgates.toml", but(GATES, ('"check", "test"', '"check"')))
        repo.commit_all("second")  # that hides nothing
        repo.write("gitgates.local.toml", '[gates.test]\non_fail = "CONTINUE"\n')
        repo.write(".claude/settings.local.json", '{"disableAllHooks": true}')
    done = repo.gitgates("review", "weakened")
    unknown = "(in a file that is in no snapshot: its author is unknown)"
    assert (
        done.stdout.decode()
        == f"""\
.claude/settings.local.json
  agent's hooks relaxed: disableAllHooks: true {unknown}
gitgates.local.toml
  gate relaxed: gates.test.on_fail: `BLOCK` → `CONTINUE` {unknown}
gitgates.toml
  gate relaxed: hooks.Stop.gates: - test
tests/test_sums.py
  5: assertions removed: in test_add: 2 → 1, without `assert add(0, 0) == 0`
  7: warning suppressed: add(0, 0) #noqa

5 findings in 4 files
"""
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_the_verb_as_json(agent: Agent) -> None:
    agent.edit("tests/test_sums.py", "")
    done = agent.repo.gitgates("review", "weakened", "--format", "json")
    document = json.loads(done.stdout)
    assert document["version"] == 1
    assert [one["what"] for one in document["findings"]] == ["test removed"] * 3
    assert {one["path"] for one in document["findings"]} == {"tests/test_sums.py"}


@pytest.mark.slow
def test_nothing_was_found(agent: Agent) -> None:
    agent.edit("shop.py", "def add(a, b):\n    return a + b\n")
    done = agent.repo.gitgates("review", "weakened")
    assert done.stdout == b"nothing found that weakens the checks\n"
    document = json.loads(agent.repo.gitgates("review", "weakened", "--format", "json").stdout)
    assert document == {"version": 1, "findings": []}


@pytest.mark.slow
def test_what_a_colleague_has_relaxed_is_not_the_sessions(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = agent.repo
    long_ago(monkeypatch)
    other = Repo(repo.path.parent / "other")
    repo.git("clone", "-q", str(repo.path), str(other.path))
    other.write("tests/test_sums.py", "")
    other.write("gitgates.toml", but(GATES, ('"check", "test"', '"check"')))
    other.commit_all("theirs")
    right_now(monkeypatch)
    repo.git("remote", "add", "theirs", str(other.path))
    repo.git("fetch", "-q", "theirs")
    with agent.call():
        repo.git("merge", "-q", "theirs/main")
    done = repo.gitgates("review", "weakened")
    assert done.stdout == b"nothing found that weakens the checks\n"


def test_settings_that_cannot_be_read_any_more(agent: Agent) -> None:
    found = weakened_by(agent, "no TOML")
    assert [one.detail.partition(":")[0] for one in found] == ["the settings can no longer be read"]


def weakened_by(agent: Agent, text: str) -> tuple[Weakening, ...]:
    """Return what new settings weaken; with broken ones, no verb runs."""
    repo = agent.repo
    roots = find_repo(str(repo.path), dict(os.environ))
    start = look_as_stored(roots)
    repo.write("gitgates.toml", text)
    now = look_as_stored(roots)
    return weakened(Trees(roots, start.tree, now.tree), Config())


@pytest.mark.slow
@pytest.mark.parametrize("agent_type", ["", "worker"])
def test_a_worker_is_refused(agent: Agent, agent_type: str) -> None:
    status, told = seen(agent, agent_type)
    assert status == 64
    assert told.startswith("gitgates: this is only for the reviewer")


@pytest.mark.slow
@pytest.mark.parametrize("agent_type", ["reviewer", "plugin:reviewer"])
def test_the_reviewer_is_shown_it(agent: Agent, agent_type: str) -> None:
    status, told = seen(agent, agent_type)
    assert (status, told) == (0, "nothing found that weakens the checks\n")


def seen(agent: Agent, agent_type: str) -> tuple[int, str]:
    """Run the verb as an agent does, in whose shell it has the session's id. Return its end."""
    env = {"CLAUDE_CODE_SESSION_ID": "s1"}
    own = {"agent_id": "a1", "agent_type": agent_type} if agent_type else {}
    return run_by_agent(agent, "review", "weakened", **own, **env)
