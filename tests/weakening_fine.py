"""Changes that weaken nothing, though some look like it, one a row: what it shows, its files."""

from __future__ import annotations

from weakening_recipes import RUN_STILL
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
    Files,
    but,
    up_to,
)
from weakening_still import HELD_STILL

T = "tests/test_sums.py"
W = ".github/workflows/ci.yml"
SUB = "def test_sub():\n    assert sub(3, 2) == 1\n"
LONG = "def test_long():\n    x = make()\n    x.go()\n    assert x.done\n    assert x.ok\n"

FINE: tuple[tuple[str, Files], ...] = (
    # tests that are still there
    ("a test file moved", ((T, PY, None), ("tests/unit/test_sums.py", None, PY))),
    ("a test moved to another file", ((T, PY, but(PY, (SUB, ""))), ("tests/test_b.py", "", SUB))),
    ("a test moved within its file", ((T, PY, SUB + but(PY, (SUB, ""))),)),
    (
        "a test moved into a class",
        ((T, SUB, "class TestSub:\n    def test_sub(self):\n        assert sub(3, 2) == 1\n"),),
    ),
    ("a test renamed", ((T, LONG, but(LONG, ("test_long", "test_short"))),)),
    (
        "a test renamed and changed a little",
        ((T, LONG, but(LONG, ("test_long", "test_short"), ("make()", "make(1)"))),),
    ),
    (
        "a test renamed and moved",
        ((T, LONG + SUB, SUB), ("tests/test_b.py", None, but(LONG, ("test_long", "test_b")))),
    ),
    ("a test added", ((T, PY, PY + "\n\n" + LONG),)),
    ("a test file added", ((T, None, PY),)),
    ("an assertion added", ((T, PY, but(PY, ("== 1\n", "== 1\n    assert sub(1, 1) == 0\n"))),)),
    ("an assertion changed", ((T, PY, but(PY, ("sub(3, 2) == 1", "sub(3, 2) == 2"))),)),
    (
        "an assertion on several lines",
        (
            (
                T,
                PY,
                but(
                    PY,
                    ("assert sub(3, 2) == 1", "assert (\n        sub(3, 2)\n        == 1\n    )"),
                ),
            ),
        ),
    ),
    (
        "assertions moved to a new test",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "    assert add(0, 0) == 0\n",
                        "\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
                    ),
                ),
            ),
        ),
    ),
    (
        "an assertion moved to a helper",
        (
            (
                T,
                "def test_a():\n    assert a() == 1\n    b()\n",
                "def check():\n    assert a() == 1\n\n\ndef test_a():\n    check()\n    b()\n",
            ),
        ),
    ),
    (
        "a signature on several lines",
        ((T, PY, but(PY, ("def test_sub():", "def test_sub(\n    tmp_path: Path,\n) -> None:"))),),
    ),
    ("a fixture removed", ((T, "@pytest.fixture\ndef shop():\n    return 1\n" + SUB, SUB),)),
    (
        "a text with a test in it",
        ((T, 'CODE = """\ndef test_x():\n    assert 1\n"""\n', 'CODE = """\n"""\n'),),
    ),
    ("code that is called test", (("shop/client.py", "def test_connection():\n    pass\n", ""),)),
    (
        "an assertion of code",
        (("shop/sums.py", "def f(x):\n    assert x\n", "def f(x):\n    check(x)\n"),),
    ),
    ("code deleted", (("shop/sums.py", "def f(x):\n    assert x\n", None),)),
    (
        "a page about tests",
        (("docs/tests.md", "def test_a(): assert x\n", "pytest.mark.skip, #noqa\n"),),
    ),
    ("a test of JavaScript moved", (("a.test.ts", JS, None), ("b/a.test.ts", None, JS))),
    ("JavaScript to TypeScript", (("a.test.js", JS, None), ("a.test.ts", None, JS))),
    ("a test of JavaScript renamed", (("a.test.ts", JS, but(JS, ("'adds'", "'adds numbers'"))),)),
    ("test for it", (("a.test.ts", JS, but(JS, ("it('adds'", "test('adds'"))),)),
    ("quotes changed", (("a.test.ts", JS, but(JS, ("'adds'", '"adds"'))),)),
    ("a skip gone", (("a.test.ts", but(JS, ("it('adds'", "it.skip('adds'")), JS),)),
    ("a skip in a comment", (("a.test.ts", JS, "// it.skip('x') was here\n" + JS),)),
    (
        "a skip in a text",
        (("a.test.ts", JS, but(JS, ("'adds'", "'adds'"), ("add(1, 2)", "add('it.skip(', 2)"))),),
    ),
    ("emit, no it", (("a.test.ts", JS, "emit('x');\nfoo.it.only;\n" + JS),)),
    (
        "a regular expression with a quote",
        (("a.test.ts", JS, JS + "const quote = /['\"]/;\n// it.only(\n"),),
    ),
    ("a test of Go renamed", (("s_test.go", GO, but(GO, ("TestAdd", "TestSum"))),)),
    (
        "Skip of something else",
        (("s_test.go", GO, but(GO, ("\trequire", "\tlist.Skip(1)\n\trequire"))),),
    ),
    ("a raw text of Go", (("s_test.go", GO, GO + 'var x = `t.Skip("no")`\n'),)),
    (
        "a test of Rust moved",
        (
            ("src/lib.rs", RUST, up_to(RUST, "#[cfg")),
            ("src/tests.rs", None, RUST[RUST.index("#[cfg") :]),
        ),
    ),
    (
        "lifetimes of Rust",
        (("src/lib.rs", RUST, "fn f<'a>(x: &'a str) -> &'a str { x }\n" + RUST),),
    ),
    ("an attribute of Rust", (("src/lib.rs", RUST, "#[derive(Debug)]\nstruct A;\n" + RUST),)),
    ("allow in a comment", (("src/lib.rs", RUST, "// #[allow(x)] is not needed\n" + RUST),)),
    (
        "Java to Kotlin keeps its tests",
        (("SumTest.java", JAVA, None), ("b/SumTest.java", None, JAVA)),
    ),
    (
        "a test of Java renamed",
        (("SumTest.java", JAVA, but(JAVA, ("void adds()", "void addsTwo()"))),),
    ),
    ("Disabled in a comment", (("SumTest.java", JAVA, "// @Disabled until today\n" + JAVA),)),
    (
        "a case added",
        (
            (
                "SumTests.cs",
                CSHARP,
                but(CSHARP, ("[InlineData(1)]", "[InlineData(1)]\n    [InlineData(2)]")),
            ),
        ),
    ),
    ("a test of Ruby renamed", (("sum_spec.rb", RUBY, but(RUBY, ('"adds"', '"adds two"'))),)),
    (
        "to skip, in a text of Ruby",
        (
            (
                "sum_spec.rb",
                RUBY,
                but(RUBY, ('"adds"', '"adds"'), ("add(1, 2)", "add(1, 2) # skip: true")),
            ),
        ),
    ),
    (
        "a test of PHP moved",
        (("tests/SumTest.php", PHP, None), ("tests/Unit/SumTest.php", None, PHP)),
    ),
    ("a test of bats moved", (("a.bats", BATS, None), ("b.bats", None, BATS))),
    # warnings
    ("noqa in a text", (("a.py", "x = 1\n", 'x = "#noqa"\n'),)),
    ("noqa in a page", (("README.md", "", "Write `#noqa: E501`.\n"),)),
    (
        "noqa that was there, with other code",
        (("a.py", "x = f()  #noqa: E501\n", "x = g()  #noqa: E501\n"),),
    ),
    (
        "noqa moved",
        (("a.py", "x = f()  #noqa: E501\n", ""), ("b.py", "", "x = f()  #noqa: E501\n")),
    ),
    ("noqa of less", (("a.py", "x = 1  #noqa\n", "x = 1  #noqa: E501\n"),)),
    ("noqa of fewer rules", (("a.py", "x = 1  #noqa: E501, F401\n", "x = 1  #noqa: F401\n"),)),
    ("noqa gone", (("a.py", "x = 1  #noqa\n", "x = 1\n"),)),
    (
        "a reason added",
        (("a.py", "x = 1  #noqa: E501\n", "x = 1  #noqa: E501 - long on purpose\n"),),
    ),
    (
        "a file with one renamed",
        (("a.py", "x = 1  # type: ignore\n", None), ("b.py", None, "x = 1  # type: ignore\n")),
    ),
    ("eslint in a text", (("a.ts", "", 'const a = "// eslint-disable";\n'),)),
    (
        "eslint moved with its line",
        (
            ("a.ts", "// eslint-disable-next-line no-x\nf();\n", ""),
            ("b.ts", "", "// eslint-disable-next-line no-x\nf();\n"),
        ),
    ),
    # settings
    ("a dependency", (("pyproject.toml", PROJECT, but(PROJECT, ('"click"', '"click", "rich"'))),)),
    ("a rule more", (("pyproject.toml", PROJECT, but(PROJECT, ('"S"]', '"S", "B"]'))),)),
    (
        "an accepted failure fixed",
        (
            (
                ".gitgates-baseline.json",
                '{\n  "lint 12": "old",\n  "version": 1\n}\n',
                '{\n  "version": 1\n}\n',
            ),
        ),
    ),
    ("a rule ignored no more", (("pyproject.toml", PROJECT, but(PROJECT, ('["E203"]', "[]"))),)),
    ("a threshold raised", (("pyproject.toml", PROJECT, but(PROJECT, ("= 90", "= 95"))),)),
    (
        "a tool that is new",
        (
            (
                "pyproject.toml",
                PROJECT,
                PROJECT + "\n[tool.ty]\nrules = []\n[tool.black]\nline-length = 9\n",
            ),
        ),
    ),
    (
        "the order of a list",
        (("pyproject.toml", PROJECT, but(PROJECT, ('["E", "F", "S"]', '["S", "E", "F"]'))),),
    ),
    (
        "comments and white space",
        (
            (
                "pyproject.toml",
                PROJECT,
                "# shop\n" + but(PROJECT, ("fail_under = 90", "fail_under=90 # %")),
            ),
        ),
    ),
    (
        "the formatter",
        (("pyproject.toml", PROJECT, PROJECT + '[tool.ruff.format]\nquote-style = "single"\n'),),
    ),
    ("stricter", (("mypy.ini", "[mypy]\nstrict = false\n", "[mypy]\nstrict = true\n"),)),
    (
        "another target",
        (
            (
                "tsconfig.json",
                '{"compilerOptions": {"target": "es5", "strict": true}}',
                '{"compilerOptions": {"target": "es6", "strict": true}}',
            ),
        ),
    ),
    (
        "an eslint rule on",
        ((".eslintrc.json", '{"rules": {"a": "warn"}}', '{"rules": {"a": "error", "b": 2}}'),),
    ),
    (
        "a hook of pre-commit updated",
        ((".pre-commit-config.yaml", HOOKS, but(HOOKS, ("v0.6.0", "v0.7.0"))),),
    ),
    (
        "a hook of pre-commit added",
        ((".pre-commit-config.yaml", HOOKS, HOOKS + "      - id: bandit\n"),),
    ),
    (
        "hooks in another order",
        (
            (
                ".pre-commit-config.yaml",
                HOOKS,
                but(
                    HOOKS,
                    (
                        "      - id: ruff\n      - id: ruff-format\n",
                        "      - id: ruff-format\n      - id: ruff\n",
                    ),
                ),
            ),
        ),
    ),
    (
        "a list written in another way",
        (
            (
                ".golangci.yml",
                "linters:\n  enable: [a,\n    b]\n",
                "linters:\n  enable:\n  - b\n  - a\n",
            ),
        ),
    ),
    (
        "a text wrapped",
        ((".rubocop.yml", "A:\n  Reason: one two\n", "A:\n  Reason: one\n    two\n"),),
    ),
    (
        "a value quoted",
        ((".rubocop.yml", "A: {Max: 10}\n", "A:\n  'Max': \"10\"\n"),),
    ),
    (
        "a value named once",
        ((".rubocop.yml", "A: {Max: 10}\nB: {Max: 10}\n", "A: {Max: &m 10}\nB: {Max: *m}\n"),),
    ),
    (
        "events of a workflow written in another way",
        (
            (
                ".github/workflows/ci.yml",
                "on:\n  push:\n  pull_request:\n",
                "on: [push,\n  pull_request]\n",
            ),
        ),
    ),
    (
        "a linter more",
        ((".golangci.yml", "linters:\n  enable:\n  - a\n", "linters:\n  enable: [a, b] # both\n"),),
    ),
    (
        "a script that is no check",
        (("package.json", '{"scripts": {"build": "a"}}', '{"scripts": {"build": "b"}}'),),
    ),
    (
        "a version",
        (
            (
                "package.json",
                '{"version": "1", "scripts": {"test": "jest"}}',
                '{"version": "2", "scripts": {"test": "jest"}}',
            ),
        ),
    ),
    (
        "a comment of eslint.config.js",
        (("eslint.config.js", "export default [];\n", "// ours\nexport default [];\n"),),
    ),
    # CI
    ("an action updated", ((W, CI, but(CI, ("@v3", "@v4"))),)),
    ("a step more", ((W, CI, CI + "      - run: bandit -r src\n"),)),
    ("a step renamed", ((W, CI, but(CI, ("name: Test", "name: Run tests"))),)),
    (
        "steps in another job",
        ((W, CI, but(CI, ("          mypy\n", "  types:\n    steps:\n      - run: mypy\n"))),),
    ),
    (
        "a step moved to another workflow",
        (
            (W, CI, but(CI, ("          mypy\n", ""))),
            (
                ".github/workflows/types.yml",
                None,
                "on: push\njobs:\n  a:\n    steps:\n      - run: mypy\n",
            ),
        ),
    ),
    ("continue-on-error: false", ((W, CI, CI + "        continue-on-error: false\n"),)),
    ("|| true in a comment", ((W, CI, CI + "        # never write || true\n"),)),
    ("what is installed", ((W, CI, but(CI, ("pip install ruff pytest", "pip install ruff"))),)),
    ("a workflow renamed", ((W, CI, None), (".github/workflows/check.yml", None, CI))),
    (
        "no longer generated",
        ((".gitattributes", "a linguist-generated\n", "a linguist-generated=false\n"),),
    ),
    ("line ends", ((".gitattributes", "", "*.sh text eol=lf\n"),)),
    ("a page about --no-verify", (("docs/git.md", "", "git commit --no-verify\n"),)),
    (
        "a comment about --no-verify",
        (("release.sh", "git commit\n", "# never --no-verify\ngit commit\n"),),
    ),
    *HELD_STILL,
    *RUN_STILL,
)
