"""What weakens the checks: it is found, what only looks like it is not, and it is told."""

from __future__ import annotations

import json

from agent_support import Agent
from conftest import Repo
from each_case import each_case
from review_support import document, run_by_agent, said
from session_support import begin

from gitgates.features.review.weakened import Pair, find

PY = """\
import pytest


def test_add():
    assert add(1, 2) == 3
    assert add(0, 0) == 0


def test_sub():
    result = sub(3, 2)
    assert result == 1
"""
JS = """\
describe('sums', () => {
  it('adds', () => {
    expect(add(1, 2)).toBe(3);
  });
  it('subtracts', async () => {
    expect(await sub(3, 2)).toBe(1);
  });
});
"""
GO = """\
func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal("wrong")
	}
}

func TestSub(t *testing.T) {
	require.Equal(t, 1, Sub(3, 2))
}
"""
RUST = """\
    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }

    #[tokio::test]
    async fn subtracts() {
        assert!(sub(3, 2) == 1);
    }
"""
JAVA = """\
    @Test
    void adds() {
        assertEquals(3, add(1, 2));
    }

    @ParameterizedTest
    @ValueSource(ints = {1})
    void subtracts(int n) {
        assertEquals(n, sub(3, 2));
    }
"""
RUBY = """\
  it "adds" do
    expect(add(1, 2)).to eq(3)
  end
  it "subtracts" do
    expect(sub(3, 2)).to eq(1)
  end
"""
CI = """\
on:
  push:
  pull_request:
jobs:
  check:
    steps:
      - run: pip install ruff pytest
      - name: Test
        run: pytest -q --cov
      - run: |
          ruff check
          mypy
"""
MAKE = """\
test: build
	pytest -q --cov-fail-under=90
lint:
	@ruff check .
	$(PYTHON) -m mypy src
clean:
	rm -rf build
"""
PROJECT = """\
[tool.ruff.lint]
select = ["E", "F", "S"]
ignore = ["E203"]
max-complexity = 10
[tool.mypy]
strict = true
[tool.coverage.report]
fail_under = 90
"""
HOOKS = """\
repos:
  - repo: local
    hooks:
      - id: mypy
        entry: mypy
      - id: format
        entry: ruff format
"""
T, W, M, P = "tests/test_sums.py", ".github/workflows/ci.yml", "Makefile", "pyproject.toml"
REMOVED, SKIPPED, SUPPRESSED = "test removed", "test skipped", "warning suppressed"
RELAXED, SETTING = "check relaxed", "check's settings relaxed"

# What is replaced in a file, and what that is found to be. Nothing to replace: it is put in front.
WEAKER = (
    (T, PY, ("def test_sub():\n    result = sub(3, 2)\n    assert result == 1\n", ""), REMOVED),
    (T, PY, ("def test_sub", "# def test_sub"), REMOVED),
    (T, PY, ("def test_sub", "def _test_sub"), REMOVED),
    (T, PY, (PY, ""), REMOVED),
    ("a.test.ts", JS, ("  it('subtracts'", "  run('subtracts'"), REMOVED),
    ("s_test.go", GO, ("func TestSub", "func testSub"), REMOVED),
    ("src/lib.rs", RUST, ("    #[tokio::test]\n", ""), REMOVED),
    ("SumTest.java", JAVA, ("    @ParameterizedTest\n", ""), REMOVED),
    ("sum_spec.rb", RUBY, ('  it "subtracts"', '  def subtracts("'), REMOVED),
    ("tests/SumTest.php", "    public function testAdd()\n", ("testAdd", "add"), REMOVED),
    ("a.bats", '@test "adds" {\n', ("@test", "#"), REMOVED),
    (T, PY, ("    assert add(0, 0) == 0\n", ""), "assertions removed"),
    ("s_test.go", GO, ('\t\tt.Fatal("wrong")\n', ""), "assertions removed"),
    (T, PY, ("assert result == 1", "assert True"), "assertion that always holds"),
    (T, PY, ("result == 1", "result == 1 or True"), "assertion that always holds"),
    ("a.test.ts", JS, ("add(1, 2)).toBe(3)", "true).toBe(true)"), "assertion that always holds"),
    (T, PY, ("def test_sub", "@pytest.mark.skip(reason='slow')\ndef test_sub"), SKIPPED),
    (T, PY, ("    result =", "    pytest.skip('no')\n    result ="), SKIPPED),
    ("a.test.ts", JS, ("it('adds'", "it.skip('adds'"), SKIPPED),
    ("a.test.ts", JS, ("it('adds'", "it.only('adds'"), SKIPPED),
    ("a.spec.js", JS, ("describe(", "fdescribe("), SKIPPED),
    ("s_test.go", GO, ("\trequire", '\tt.Skip("flaky")\n\trequire'), SKIPPED),
    ("src/lib.rs", RUST, ("    #[test]", "    #[test]\n    #[ignore]"), SKIPPED),
    ("SumTest.java", JAVA, ("    @Test", "    @Disabled\n    @Test"), SKIPPED),
    ("SumTests.cs", "    [Fact]\n", ("[Fact]", '[Fact(Skip = "slow")]'), SKIPPED),
    ("sum_spec.rb", RUBY, ("    expect(sub", "    pending\n    expect(sub"), SKIPPED),
    ("a.py", "x = 1\n", ("1", "1  #noqa: E501"), SUPPRESSED),
    ("a.py", "x = 1\n", ("1", "1  # type: ignore[assignment]"), SUPPRESSED),
    ("a.py", "x = 1\n", ("", "# pylint: disable=invalid-name\n"), SUPPRESSED),
    ("a.py", "def f():\n", ("f():", "f():  # pragma: no cover"), SUPPRESSED),
    ("a.ts", "f()\n", ("", "// eslint-disable-next-line no-undef -- soon\n"), SUPPRESSED),
    ("a.tsx", "f()\n", ("", "// @ts-ignore\n"), SUPPRESSED),
    ("a.go", "f()\n", ("f()", "f() //nolint:errcheck"), SUPPRESSED),
    ("src/lib.rs", RUST, ("", "#![allow(dead_code)]\n"), SUPPRESSED),
    ("Sum.java", "class Sum {\n", ("", '@SuppressWarnings("unchecked")\n'), SUPPRESSED),
    ("Sum.cs", "class Sum {}\n", ("", "#pragma warning disable CS8602\n"), SUPPRESSED),
    ("a.rb", "f\n", ("f", "f # rubocop:disable Style/A"), SUPPRESSED),
    ("a.sh", "f $x\n", ("", "# shellcheck disable=SC2086\n"), SUPPRESSED),
    (P, PROJECT, ("= 90", "= 80"), "threshold lowered"),
    (M, MAKE, ("=90", "=10"), "threshold lowered"),
    ("package.json", '{"jest": {"lines": 80}}', ("80", "50"), "threshold lowered"),
    (P, PROJECT, ("= 10", "= 99"), "limit raised"),
    (".rubocop.yml", "A:\n  Max: 10\n", ("10", "99"), "limit raised"),
    (P, PROJECT, ('["E203"]', '["E203", "E501"]'), SETTING),
    (P, PROJECT, (', "S"]', "]"), SETTING),
    (P, PROJECT, ("strict = true", "strict = false"), SETTING),
    (P, PROJECT, ("[tool.mypy]\n", "[tool.other]\n"), SETTING),
    (".eslintrc.json", '{"a": "error"}', ("error", "off"), SETTING),
    (".golangci.yml", "  enable:\n    - a\n    - b\n", ("    - b\n", ""), SETTING),
    (".eslintignore", "dist\n", ("dist\n", "dist\nsrc/old\n"), "file no longer checked"),
    (".gitgates-baseline.json", '  "a 1": "old",\n', ("a 1", "a 2"), "file no longer checked"),
    (W, CI, ("          mypy\n", ""), "check removed"),
    (W, CI, (CI, ""), "check removed"),
    (M, MAKE, ("\t@ruff check .\n", ""), "check removed"),
    (M, MAKE, ("\t@ruff", "\t# @ruff"), "check removed"),
    (M, MAKE, ("@ruff check", "@echo ruff check"), "check removed"),
    (M, MAKE, ("pytest -q --cov-fail-under=90", "true"), "check removed"),
    ("package.json", '{"scripts": {"test": "jest"}}', ('"jest"', '"true"'), "check removed"),
    (".pre-commit-config.yaml", HOOKS, ("      - id: format\n", ""), "check removed"),
    ("tox.ini", "commands =\n    mypy src\n", ("    mypy src\n", ""), "check removed"),
    (M, MAKE, ("mypy src", "mypy src || true"), RELAXED),
    (M, MAKE, ("mypy src", "mypy src; exit 0"), RELAXED),
    (M, MAKE, ("\t@ruff", "\t-ruff"), RELAXED),
    (M, MAKE, ("=90", '=90 -k "not slow"'), RELAXED),
    ("ci/run.sh", "go test -race ./...\n", (" -race", ""), RELAXED),
    ("scripts/test", "set -e\ngo vet\n", ("go vet", "set +e\ngo vet"), RELAXED),
    (W, CI, ("--cov", "--cov || true"), RELAXED),
    (W, CI, (" --cov", ""), RELAXED),
    (W, CI, ("  check:\n", "  check:\n    continue-on-error: true\n"), RELAXED),
    (W, CI, ("  check:\n", "  check:\n    if: false\n"), RELAXED),
    (W, CI, ("  pull_request:\n", ""), RELAXED),
    (".pre-commit-config.yaml", HOOKS, ("id: mypy", "id: mypy\n  stages: [manual]"), RELAXED),
    (".gitattributes", "", ("", "src/** linguist-generated\n"), "hidden from diffs"),
    ("release.sh", "git commit\n", ("commit", "commit --no-verify"), "hooks bypassed"),
    (M, "a:\n", ("a:\n", "a:\n\tgit config core.hooksPath /x\n"), "hooks bypassed"),
)

FINE = (
    (T, PY, ("def test_sub", "def test_difference")),
    (T, PY, ("def test_sub():", "def test_sub(\n    tmp_path,\n) -> None:")),
    (T, PY, ("result == 1", "result == 2")),
    (T, PY, ("", "@pytest.fixture\ndef shop():\n    return 1\n")),
    (T, PY, ("", "# @pytest.mark.skip was here\n")),
    ("shop/client.py", "def test_connection():\n    pass\n", ("test_", "")),
    ("shop/sums.py", "    assert x\n", ("assert x", "check(x)")),
    ("docs/tests.md", "def test_a(): assert x\n", ("def test_a(): assert x", "#noqa")),
    ("a.test.ts", JS, ("'adds'", "'adds numbers'")),
    ("a.test.ts", JS, ("it('adds'", "test('adds'")),
    ("a.test.ts", JS, ("add(1, 2)", "add('it.skip(', 2)")),
    ("a.test.ts", JS.replace("it('adds'", "it.skip('adds'"), ("it.skip", "it")),
    ("s_test.go", GO, ("\trequire", "\tlist.Skip(1)\n\trequire")),
    ("SumTest.java", JAVA, ("void adds()", "void addsTwo()")),
    ("a.py", "x = 1\n", ("1", '"#noqa"')),
    ("a.py", "x = f()  #noqa: E501\n", ("f()", "g()")),
    ("a.py", "x = 1  #noqa\n", ("#noqa", "#noqa: E501")),
    ("a.py", "x = 1  #noqa\n", ("  #noqa", "")),
    ("a.ts", "", ("", 'const a = "// eslint-disable";\n')),
    (P, PROJECT, ("= 90", "= 95")),
    (P, PROJECT, ('"S"]', '"S", "B"]')),
    (P, PROJECT, ('["E203"]', "[]")),
    (P, PROJECT, ('["E", "F", "S"]', '["S", "F", "E"]')),
    ("mypy.ini", "strict = false\n", ("false", "true")),
    (".eslintrc.json", '{"a": "warn"}', ("warn", "error")),
    ("package.json", '{"version": "1", "scripts": {"test": "jest"}}', ('"1"', '"2"')),
    (".gitgates-baseline.json", '  "a 1": "old",\n  "version": 1\n', ('  "a 1": "old",\n', "")),
    (W, CI, ("name: Test", "name: Run tests")),
    (W, CI, ("install ruff pytest", "install ruff")),
    (W, CI, ("          mypy\n", "          mypy\n      - run: bandit -r src\n")),
    (W, CI, ("jobs:", "# never write || true\njobs:")),
    (M, MAKE, ("$(PYTHON) -m mypy", "pyright")),
    (M, MAKE, ("@ruff", "@$(BIN)/ruff")),
    (M, MAKE, ("rm -rf build", "rm -rf build || true")),
    (M, "test:\n\tpytest\n", ("pytest", "pytest --cov-fail-under=90")),
    ("scripts/release.sh", "git tag x\n", ("git tag x", "git tag x || true")),
    (".pre-commit-config.yaml", HOOKS, ("", "# rev: v1\n")),
    (".gitattributes", "", ("", "*.sh text eol=lf\n")),
    ("docs/git.md", "", ("", "git commit --no-verify\n")),
    ("release.sh", "git commit\n", ("", "# never --no-verify\n")),
)


def changed(text: str, change: tuple[str, str]) -> str:
    old, new = change
    assert old in text
    return text.replace(old, new, 1)


def found(*files: tuple[str, str, str]) -> list[tuple[str, str]]:
    findings = find(tuple(Pair(*file) for file in files))
    return [(finding.path, finding.what) for finding in findings]


@each_case(("path", "text", "change", "what"), WEAKER)
def test_finds(path: str, text: str, change: tuple[str, str], what: str) -> None:
    assert (path, what) in found((path, text, changed(text, change)))


@each_case(("path", "text", "change"), FINE)
def test_finds_nothing(path: str, text: str, change: tuple[str, str]) -> None:
    assert found((path, text, changed(text, change))) == []


@each_case(("path", "text", "change", "what"), WEAKER)
def test_what_was_there_before_is_no_finding(
    path: str, text: str, change: tuple[str, str], what: str
) -> None:
    after = changed(text, change)
    assert found((path, after, after)) == [], what


@each_case(
    ("path", "other", "text"),
    [
        (T, "tests/unit/test_sums.py", PY),
        ("a.test.js", "b/a.test.ts", JS),
        ("a.py", "b.py", "x = 1  # type: ignore\n"),
        (M, "justfile", MAKE),
        (W, ".github/workflows/check.yml", CI),
    ],
)
def test_what_has_moved_to_another_file_is_not_gone(path: str, other: str, text: str) -> None:
    assert found((path, text, ""), (other, "", text)) == []


def test_a_finding_names_the_line_or_what_is_gone() -> None:
    after = PY.replace("result = sub(3, 2)\n", "result = sub(3, 2)  #noqa: E501\n")
    first, second = find((Pair(T, PY, after.replace("def test_add", "def add")),))
    assert (first.what, first.detail, first.line) == (REMOVED, "test_add", 0)
    assert (second.detail, second.line) == ("result = sub(3, 2) #noqa: E501", 10)


def test_a_number_is_told_as_it_was_and_is() -> None:
    (finding,) = find((Pair(P, PROJECT, PROJECT.replace("= 90", "= 80")),))
    assert (finding.detail, finding.line) == ("fail_under: 90 → 80", 8)


# Told at the end of a turn.

REVIEW = '[hooks.Stop]\ngates = ["review"]\n'
GATES = f'[gates.check]\ncommand = "ruff"\ntimeout = 100\n{REVIEW}'
SKIP = PY.replace("def test_sub", "@pytest.mark.skip\ndef test_sub")
LINE = "tests/test_sums.py: test skipped"


def session(repo: Repo, config: str = REVIEW) -> Agent:
    """Return a session in a repository with tests."""
    repo.write(T, PY)
    return begin(repo, config)


def test_the_agent_and_the_person_are_told_once_in_one_line(repo: Repo) -> None:
    agent = session(repo)
    agent.edit(T, SKIP)
    told = agent.stop()
    assert told == {
        "decision": "block",
        "reason": f"Your changes weaken the checks: {LINE}. Undo what nobody asked for; for the "
        "rest, give the reason in your report. `gitgates review status` lists all of them.",
        "systemMessage": f"gitgates: review: the agent's changes weaken the checks: {LINE}",
    }
    assert agent.stop(again=True) == {}
    agent.edit("a.py", "x = 1  #noqa\n")
    assert LINE not in agent.stop()["reason"]
    assert [one["gates"] for one in agent.facts() if one["what"] == "round"] == ["weakened"] * 2


def test_it_is_told_with_the_request_for_a_review(repo: Repo) -> None:
    agent = session(repo, f"{REVIEW}[review]\nmin_lines = 0.1\n")
    agent.edit(T, SKIP)
    reason = agent.stop()["reason"]
    assert reason.startswith(f"Your changes weaken the checks: {LINE}.")
    assert "large enough to need a review" in reason
    assert "weaken" not in agent.stop(again=True)["reason"]


def test_it_is_told_where_no_review_is_asked_for(repo: Repo) -> None:
    agent = session(repo, f'{REVIEW}[review]\nmode = "off"\nprefix = ""\n')
    agent.edit(T, SKIP)
    assert LINE in agent.stop()["reason"]
    assert agent.stop(again=True) == {}


def test_it_is_only_listed(repo: Repo) -> None:
    agent = session(repo, f'{REVIEW}[review]\nweakened = "off"\n')
    agent.edit(T, SKIP)
    assert agent.stop() == {}
    assert f"weakened:\n  {T}:9: test skipped: @pytest.mark.skip\n" in said(repo)


def test_it_blocks_until_there_is_a_review_or_a_reason(repo: Repo) -> None:
    agent = session(repo, f'{REVIEW}[review]\nweakened = "block"\n')
    agent.edit(T, SKIP)
    assert "weaken the checks, so they need a review" in agent.stop()["reason"]
    assert "This is the second request" in agent.stop(again=True)["reason"]
    assert run_by_agent(agent, "review", "skip", "--reason", "it is flaky")[0] == 0
    assert agent.stop(again=True)["systemMessage"].endswith("none is needed: it is flaky")
    agent.edit("a.py", "x = 1  #noqa\n")
    reason = agent.stop()["reason"]
    assert "no longer covers it: the changes since then weaken the checks" in reason
    agent.edit(T, PY)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop(again=True) == {}


def test_weaker_hooks_of_agents(repo: Repo) -> None:
    path, lint = ".claude/settings.json", {"hooks": [{"type": "command", "command": "lint"}]}
    repo.write(path, json.dumps({"hooks": {"Stop": [lint]}}))
    session(repo).edit(path, '{"disableAllHooks": true}')
    details = [one["detail"] for one in document(repo)["weakened"]]
    assert details == ["all hooks are switched off", "Stop: `lint` was removed"]


def test_weaker_settings_of_gates(repo: Repo) -> None:
    agent = session(repo, GATES)
    with agent.call():
        repo.config(GATES.replace("100", "9"))
    details = [one["detail"] for one in document(repo)["weakened"]]
    assert details == ["gates.check.timeout: 100 → 9"]


def test_the_change_to_review_says_it(repo: Repo) -> None:
    session(repo).edit(T, SKIP)
    told = said(repo, "diff")
    assert f"# What weakens the checks\n\n{T}:9: test skipped: @pytest.mark.skip\n" in told


def test_files_that_nobody_has_written_end_soon() -> None:
    """An expression that begins again at each place would take minutes."""
    settings = f"max = 1\n[tool.{'max' * 30_000}"
    tests = "\n" * 100_000 + "#[test]\n" * 10_000 + "@pytest.mark.skip\n"
    script = f'{{"test": "{"jest " * 20_000}"}}'
    before = (("pyproject.toml", settings), ("package.json", script), ("tests/test_a.py", ""))
    after = (settings.replace("= 1", "= 2"), script, tests)
    findings = find(tuple(Pair(*file, now) for file, now in zip(before, after, strict=True)))
    assert [(one.path, one.what) for one in findings] == [
        ("tests/test_a.py", "test skipped"),
        ("pyproject.toml", "limit raised"),
    ]
    assert findings[0].line == 110_001
