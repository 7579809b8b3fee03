"""Changes that weaken the checks, one a row:

what it shows, its files (path, before, after; None: not there), and the findings (path, what, a
part of the detail).
"""

from __future__ import annotations

from weakening_recipes import RUN_LESS
from weakening_samples import (
    BATS,
    CI,
    CSHARP,
    GO,
    HOOKS,
    JAVA,
    JS,
    PHP,
    PROJECT,
    PY,
    RUBY,
    RUST,
    Case,
    but,
    up_to,
)

from gitgates.features.review.weakening import finding as F  # noqa: N812 - one letter in a long table

T = "tests/test_sums.py"
WEAKER: tuple[Case, ...] = (
    ("a test file deleted", ((T, PY, None),), ((T, F.TEST_FILE_GONE, "test_add, test_sub"),)),
    (
        "a test removed",
        ((T, PY, but(PY, ("def test_sub():\n    assert sub(3, 2) == 1\n", ""))),),
        ((T, F.TEST_GONE, "test_sub (line 10 before)"),),
    ),
    (
        "a test put into comments",
        (
            (
                T,
                PY,
                but(PY, ("def test_sub():\n    assert sub", "# def test_sub():\n#     assert sub")),
            ),
        ),
        ((T, F.TEST_GONE, "test_sub"),),
    ),
    (
        "a test that no runner finds any more",
        ((T, PY, but(PY, ("def test_sub", "def _test_sub"))),),
        ((T, F.TEST_GONE, "test_sub"),),
    ),
    (
        "a test replaced by one that has the same single assertion",
        (
            (
                T,
                "def test_add():\n    done = run(add)\n    assert done.status == ok\n",
                "def test_sub():\n    done = call(sub)\n    assert done.status == ok\n",
            ),
        ),
        ((T, F.TEST_GONE, "test_add"),),
    ),
    (
        "a test replaced by another one of the same name, with less in it",
        ((T, PY, but(PY, ("    assert add(0, 0) == 0\n", ""))),),
        ((T, F.ASSERTIONS_GONE, "in test_add: 2 → 1, without `assert add(0, 0) == 0`"),),
    ),
    (
        "an assertion removed while a new test brings others",
        (
            (
                T,
                PY,
                but(PY, ("    assert add(0, 0) == 0\n", ""))
                + "\n\ndef test_new():\n    assert new() == 1\n    assert new() != 2\n",
            ),
        ),
        ((T, F.ASSERTIONS_GONE, "in test_add: 2 → 1"),),
    ),
    (
        "pytest.raises removed",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "    with pytest.raises(ValueError):\n        add",
                        "    if True:\n        add",
                    ),
                ),
            ),
        ),
        ((T, F.ASSERTIONS_GONE, "in test_raises: 1 → 0"),),
    ),
    (
        "an assertion of a helper removed",
        (
            (
                T,
                "def check(x):\n    assert x\n    assert x > 1\n",
                "def check(x):\n    assert x\n",
            ),
        ),
        ((T, F.ASSERTIONS_GONE, "beside tests: 2 → 1"),),
    ),
    (
        "an assertion that always holds",
        ((T, PY, but(PY, ("assert sub(3, 2) == 1", "assert True"))),),
        ((T, F.EMPTY_ASSERTION, "assert True"),),
    ),
    (
        "or True",
        ((T, PY, but(PY, ("assert sub(3, 2) == 1", "assert sub(3, 2) == 1 or True"))),),
        ((T, F.EMPTY_ASSERTION, "or True"),),
    ),
    (
        "skip",
        ((T, PY, but(PY, ("def test_sub", '@pytest.mark.skip(reason="slow")\ndef test_sub'))),),
        ((T, F.SKIPPED, '@pytest.mark.skip(reason="slow")'),),
    ),
    (
        "xfail",
        ((T, PY, but(PY, ("def test_sub", "@pytest.mark.xfail\ndef test_sub"))),),
        ((T, F.SKIPPED, "xfail"),),
    ),
    (
        "skip while the test runs",
        ((T, PY, but(PY, ("def test_sub():\n", "def test_sub():\n    pytest.skip('no')\n"))),),
        ((T, F.SKIPPED, "pytest.skip('no')"),),
    ),
    (
        "a test file renamed so that no runner finds it",
        ((T, PY, None), ("tests/sums.py", None, PY)),
        ((T, F.TEST_FILE_GONE, "test_add"),),
    ),
    (
        "it.skip",
        (("a.test.ts", JS, but(JS, ("it('subtracts'", "it.skip('subtracts'"))),),
        (("a.test.ts", F.SKIPPED, "it.skip('subtracts'"),),
    ),
    (
        "xit and fdescribe",
        (("a.spec.js", JS, but(JS, ("  it('sub", "  xit('sub"), ("describe(", "fdescribe("))),),
        (("a.spec.js", F.ONLY, "fdescribe"), ("a.spec.js", F.SKIPPED, "xit(")),
    ),
    (
        "only",
        (("a.test.ts", JS, but(JS, ("it('adds'", "it.only('adds'"))),),
        (("a.test.ts", F.ONLY, "it.only('adds'"),),
    ),
    (
        "a test of JavaScript removed",
        (("a.test.ts", JS, up_to(JS, "  it('subtracts'") + "});\n"),),
        (("a.test.ts", F.TEST_GONE, "subtracts (line 7 before)"),),
    ),
    (
        "expect(true)",
        (
            (
                "a.test.ts",
                JS,
                but(JS, ("expect(await sub(3, 2)).toBe(1)", "expect(true).toBe(true)")),
            ),
        ),
        (("a.test.ts", F.EMPTY_ASSERTION, "expect(true).toBe(true);"),),
    ),
    (
        "a test of Go removed",
        (("s_test.go", GO, up_to(GO, "func TestSub")),),
        (("s_test.go", F.TEST_GONE, "TestSub"),),
    ),
    (
        "t.Skip",
        (("s_test.go", GO, but(GO, ("\trequire", '\tt.Skip("flaky")\n\trequire'))),),
        (("s_test.go", F.SKIPPED, 't.Skip("flaky")'),),
    ),
    (
        "t.Fatal gone",
        (("s_test.go", GO, but(GO, ('\t\tt.Fatal("wrong")\n', ""))),),
        (("s_test.go", F.ASSERTIONS_GONE, "in TestAdd: 1 → 0"),),
    ),
    (
        "#[ignore]",
        (("src/lib.rs", RUST, but(RUST, ("    #[test]", "    #[test]\n    #[ignore]"))),),
        (("src/lib.rs", F.SKIPPED, "#[ignore]"),),
    ),
    (
        "a test of Rust removed",
        (("src/lib.rs", RUST, up_to(RUST, "    #[tokio::test]") + "}\n"),),
        (("src/lib.rs", F.TEST_GONE, "adds_nothing"),),
    ),
    (
        "#![allow]",
        (("src/lib.rs", RUST, "#![allow(dead_code, unused)]\n" + RUST),),
        (("src/lib.rs", F.SUPPRESSED, "#![allow(dead_code, unused)]"),),
    ),
    (
        "@Disabled",
        (("SumTest.java", JAVA, but(JAVA, ("    @Test", "    @Disabled\n    @Test"))),),
        (("SumTest.java", F.SKIPPED, "@Disabled"),),
    ),
    (
        "a test of Java removed",
        (("SumTest.java", JAVA, up_to(JAVA, "    @ParameterizedTest") + "}\n"),),
        (("SumTest.java", F.TEST_GONE, "subtracts"),),
    ),
    (
        "@SuppressWarnings",
        (("Sum.java", "class Sum {\n}\n", '@SuppressWarnings("unchecked")\nclass Sum {\n}\n'),),
        (("Sum.java", F.SUPPRESSED, '@SuppressWarnings("unchecked")'),),
    ),
    (
        "Skip of C#",
        (("SumTests.cs", CSHARP, but(CSHARP, ("[Fact]", '[Fact(Skip = "slow")]'))),),
        (("SumTests.cs", F.SKIPPED, "Skip"),),
    ),
    (
        "a test of C# removed",
        (("SumTests.cs", CSHARP, up_to(CSHARP, "    [Theory]") + "}\n"),),
        (("SumTests.cs", F.TEST_GONE, "Subtracts"),),
    ),
    (
        "#pragma warning disable",
        (("Sum.cs", "class Sum {}\n", "#pragma warning disable CS8602\nclass Sum {}\n"),),
        (("Sum.cs", F.SUPPRESSED, "CS8602"),),
    ),
    (
        "pending of Ruby",
        (("sum_spec.rb", RUBY, but(RUBY, ("    expect(sub", "    pending\n    expect(sub"))),),
        (("sum_spec.rb", F.SKIPPED, "pending"),),
    ),
    (
        "a test of Ruby removed",
        (("sum_spec.rb", RUBY, up_to(RUBY, '  it "subtracts"') + "end\n"),),
        (("sum_spec.rb", F.TEST_GONE, "subtracts"),),
    ),
    (
        "a test of PHP removed, another one skipped",
        (
            (
                "tests/SumTest.php",
                PHP,
                up_to(
                    but(
                        PHP,
                        (
                            "        $this->assertSame(3",
                            "        $this->markTestSkipped();\n        $this->assertSame(3",
                        ),
                    ),
                    "    #[Test]",
                )
                + "}\n",
            ),
        ),
        (
            ("tests/SumTest.php", F.TEST_GONE, "subtracts"),
            ("tests/SumTest.php", F.SKIPPED, "markTestSkipped"),
        ),
    ),
    (
        "bats: one skipped, one without its assertion",
        (
            (
                "a.bats",
                BATS,
                but(BATS, ("  run add", "  skip\n  run add"), ('  [ "$output" = 1 ]\n', "")),
            ),
        ),
        (("a.bats", F.SKIPPED, "skip"), ("a.bats", F.ASSERTIONS_GONE, "in subtracts: 1 → 0")),
    ),
    (
        "noqa",
        (("a.py", "x = 1\n", "x = 1  #noqa: E501\n"),),
        (("a.py", F.SUPPRESSED, "#noqa: E501"),),
    ),
    (
        "noqa of more",
        (("a.py", "x = 1  #noqa: E501\n", "x = 1  #noqa\n"),),
        (("a.py", F.SUPPRESSED, "#noqa"),),
    ),
    (
        "type: ignore",
        (("a.py", "x = 1\n", "x = 1  # type: ignore[assignment]\n"),),
        (("a.py", F.SUPPRESSED, "type: ignore"),),
    ),
    (
        "pylint",
        (("a.py", "", "# pylint: disable=invalid-name\n"),),
        (("a.py", F.SUPPRESSED, "invalid-name"),),
    ),
    (
        "no cover",
        (("a.py", "def f():\n", "def f():  # pragma: no cover\n"),),
        (("a.py", F.SUPPRESSED, "no cover"),),
    ),
    (
        "nosec",
        (("a.py", "eval(x)\n", "eval(x)  # nosec B307\n"),),
        (("a.py", F.SUPPRESSED, "nosec"),),
    ),
    (
        "eslint",
        (("a.ts", "f()\n", "// eslint-disable-next-line no-undef -- soon\nf()\n"),),
        (("a.ts", F.SUPPRESSED, "no-undef"),),
    ),
    (
        "ts-ignore",
        (("a.tsx", "f()\n", "// @ts-ignore\nf()\n"),),
        (("a.tsx", F.SUPPRESSED, "@ts-ignore"),),
    ),
    (
        "nolint",
        (("a.go", "f()\n", "f() //nolint:errcheck\n"),),
        (("a.go", F.SUPPRESSED, "errcheck"),),
    ),
    (
        "rubocop",
        (("a.rb", "f\n", "f # rubocop:disable Style/A\n"),),
        (("a.rb", F.SUPPRESSED, "Style/A"),),
    ),
    (
        "shellcheck",
        (("a.sh", "f $x\n", "# shellcheck disable=SC2086\nf $x\n"),),
        (("a.sh", F.SUPPRESSED, "SC2086"),),
    ),
    (
        "a rule ignored",
        (("pyproject.toml", PROJECT, but(PROJECT, ('["E203"]', '["E203", "E501"]'))),),
        (("pyproject.toml", F.SETTING, "tool.ruff.lint.ignore: + E501"),),
    ),
    (
        "a rule no longer chosen",
        (("pyproject.toml", PROJECT, but(PROJECT, (', "S"]', "]"))),),
        (("pyproject.toml", F.SETTING, "select: - S"),),
    ),
    (
        "fail_under",
        (("pyproject.toml", PROJECT, but(PROJECT, ("= 90", "= 80"))),),
        (("pyproject.toml", F.SETTING, "fail_under: 90 → 80"),),
    ),
    (
        "strict",
        (("pyproject.toml", PROJECT, but(PROJECT, ("strict = true", "strict = false"))),),
        (("pyproject.toml", F.SETTING, "tool.mypy.strict: true → false"),),
    ),
    (
        "a tool's settings gone",
        (("pyproject.toml", PROJECT, but(PROJECT, ("[tool.mypy]\nstrict = true\n", ""))),),
        (("pyproject.toml", F.SETTING, "tool.mypy: removed"),),
    ),
    (
        "a new ruff.toml that ignores",
        (("tests/ruff.toml", None, 'lint.ignore = ["ALL"]\n'),),
        (("tests/ruff.toml", F.SETTING, "lint.ignore: + ALL"),),
    ),
    (
        "setup.cfg",
        (
            (
                "setup.cfg",
                "[flake8]\nmax-line-length = 88\n",
                "[flake8]\nmax-line-length = 200\nextend-ignore = E1,E2\n",
            ),
        ),
        (
            ("setup.cfg", F.SETTING, "extend-ignore: + E1, E2"),
            ("setup.cfg", F.SETTING, "max-line-length: 88 → 200"),
        ),
    ),
    (
        "tsconfig",
        (
            (
                "tsconfig.json",
                '{ // strict\n"compilerOptions": {"strict": true,},}',
                '{"compilerOptions": {"strict": false}}',
            ),
        ),
        (("tsconfig.json", F.SETTING, "strict: true → false"),),
    ),
    (
        "an eslint rule off",
        ((".eslintrc.json", '{"rules": {"eqeqeq": "error"}}', '{"rules": {"eqeqeq": "off"}}'),),
        ((".eslintrc.json", F.SETTING, "rules.eqeqeq: error → off"),),
    ),
    (
        "eslint.config.js",
        (
            (
                "eslint.config.js",
                "export default [a];\n",
                "export default [a, {rules: {b: 'off'}}];\n",
            ),
        ),
        (("eslint.config.js", F.SETTING, "'off'"),),
    ),
    (
        "golangci",
        (
            (
                ".golangci.yml",
                "linters:\n  enable:\n    - errcheck\n    - gosec\n",
                "linters:\n  enable: [errcheck]\n",
            ),
        ),
        ((".golangci.yml", F.SETTING, "linters.enable: - gosec"),),
    ),
    (
        "rubocop.yml",
        (
            (
                ".rubocop.yml",
                "Metrics:\n  Max: 10\n",
                "Metrics:\n  Max: 99\nStyle/A:\n  Enabled: false\n",
            ),
        ),
        ((".rubocop.yml", F.SETTING, "Max: 10 → 99"), (".rubocop.yml", F.SETTING, "Enabled")),
    ),
    (
        "a hook of pre-commit removed",
        ((".pre-commit-config.yaml", HOOKS, but(HOOKS, ("      - id: ruff-format\n", ""))),),
        ((".pre-commit-config.yaml", F.SETTING, "hooks[].id: - ruff-format"),),
    ),
    (
        "a list in brackets, over several lines",
        (
            (
                ".golangci.yml",
                "linters:\n  enable: [\n    errcheck,\n    govet,\n  ]\n",
                "linters:\n  enable: [\n    errcheck,\n  ]\n",
            ),
        ),
        ((".golangci.yml", F.SETTING, "linters.enable: - govet"),),
    ),
    (
        "what follows a text over two lines",
        (
            (
                ".rubocop.yml",
                "A:\n  Description: one\n    two\nB:\n  'Max': &max 10\nC: {Max: *max}\n",
                "A:\n  Description: one\n    two\nB:\n  'Max': &max 99\nC: {Max: *max}\n",
            ),
        ),
        (
            (".rubocop.yml", F.SETTING, "B.Max: 10 → 99"),
            (".rubocop.yml", F.SETTING, "C.Max: 10 → 99"),
        ),
    ),
    (
        "hooks that run by hand only, over several lines",
        (
            (
                ".pre-commit-config.yaml",
                HOOKS,
                but(
                    HOOKS,
                    ("id: mypy\n", "id: mypy\n        stages: [\n          manual,\n        ]\n"),
                ),
            ),
        ),
        ((".pre-commit-config.yaml", F.SETTING, "repos[].hooks[].stages: + manual"),),
    ),
    (
        "settings that are no YAML any more",
        ((".rubocop.yml", "A: {Max: 1}\n", "A: {Max: 1\n"),),
        (
            (
                ".rubocop.yml",
                F.SETTING,
                "can no longer be parsed as YAML, and was not compared: while",
            ),
        ),
    ),
    (
        "settings that stand for billions",
        (
            (
                ".rubocop.yml",
                "A: 1\n",
                "a0: &a0 [x, x]\n"
                + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
            ),
        ),
        ((".rubocop.yml", F.SETTING, "compared: its aliases expand to more than 100000 values"),),
    ),
    (
        "jest's threshold",
        (
            (
                "package.json",
                '{"jest": {"coverageThreshold": {"global": {"lines": 80}}}}',
                '{"jest": {"coverageThreshold": {"global": {"lines": 50}}}}',
            ),
        ),
        (("package.json", F.SETTING, "lines: 80 → 50"),),
    ),
    (
        "the script of the tests",
        (("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "exit 0"}}'),),
        (("package.json", F.SETTING, "scripts.test: jest → exit 0"),),
    ),
    (
        "settings deleted",
        (("mypy.ini", "[mypy]\nstrict = true\n", None),),
        (("mypy.ini", F.SETTING, "deleted"),),
    ),
    (
        "a file not linted",
        ((".eslintignore", "dist\n", "dist\nsrc/old\n"),),
        ((".eslintignore", F.SETTING, "src/old"),),
    ),
    (
        "a failure accepted",
        (
            (
                ".gitgates-baseline.json",
                '{\n  "lint 12": "old",\n  "version": 1\n}\n',
                '{\n  "lint 34": "new",\n  "version": 1\n}\n',
            ),
        ),
        ((".gitgates-baseline.json", F.SETTING, '"lint 34": "new"'),),
    ),
    (
        "continue-on-error",
        ((".github/workflows/ci.yml", CI, CI + "        continue-on-error: true\n"),),
        ((".github/workflows/ci.yml", F.CI, "continue-on-error: true"),),
    ),
    (
        "|| true",
        ((".github/workflows/ci.yml", CI, but(CI, ("--cov", "--cov || true"))),),
        ((".github/workflows/ci.yml", F.CI, "pytest -q --cov || true"),),
    ),
    (
        "if: false",
        ((".github/workflows/ci.yml", CI, but(CI, ("  check:\n", "  check:\n    if: false\n"))),),
        ((".github/workflows/ci.yml", F.CI, "if: false"),),
    ),
    (
        "a step removed",
        ((".github/workflows/ci.yml", CI, but(CI, ("          mypy\n", ""))),),
        ((".github/workflows/ci.yml", F.CI, "gone: `mypy`"),),
    ),
    (
        "a step that checks less",
        ((".github/workflows/ci.yml", CI, but(CI, (" --cov", ""))),),
        ((".github/workflows/ci.yml", F.CI, "`pytest -q --cov` is now `pytest -q`"),),
    ),
    (
        "CI no longer on pull requests",
        ((".github/workflows/ci.yml", CI, but(CI, ("  pull_request:\n", ""))),),
        ((".github/workflows/ci.yml", F.CI, "no longer runs on `pull_request`"),),
    ),
    (
        "CI no longer on pull requests, in brackets",
        (
            (
                ".github/workflows/ci.yml",
                "on: [push,\n  pull_request]\njobs: {}\n",
                "on: [push]\njobs: {}\n",
            ),
        ),
        ((".github/workflows/ci.yml", F.CI, "no longer runs on `pull_request`"),),
    ),
    (
        "a workflow that is not valid YAML",
        ((".github/workflows/ci.yml", "on: push\n", "on: [push\n"),),
        ((".github/workflows/ci.yml", F.CI, "cannot be parsed as YAML, and was not compared"),),
    ),
    (
        "a workflow deleted",
        ((".github/workflows/ci.yml", CI, None),),
        ((".github/workflows/ci.yml", F.CI, "deleted, together with: pytest"),),
    ),
    (
        "hidden from diffs",
        ((".gitattributes", "", "src/** linguist-generated\n*.py -diff\n"),),
        ((".gitattributes", F.HIDDEN, "linguist-generated"), (".gitattributes", F.HIDDEN, "-diff")),
    ),
    (
        "--no-verify",
        (("release.sh", "git commit\n", "git commit --no-verify\n"),),
        (("release.sh", F.BYPASSED, "--no-verify"),),
    ),
    (
        "core.hooksPath",
        (("Makefile", "a:\n", "a:\n\tgit config core.hooksPath /dev/null\n"),),
        (("Makefile", F.BYPASSED, "core.hooksPath"),),
    ),
    *RUN_LESS,
)
