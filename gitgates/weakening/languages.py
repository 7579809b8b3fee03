"""Languages: what a test, an assertion, a skipped test and a suppressed warning look like. Pure.

The patterns of tests, assertions and skips are looked for in code alone: comments and what is
between quotes are blank there. Those of `suppressions` are looked for in comments, those of
`attributes` in code and strings. What a `codes` group holds is taken one by one.
"""

from __future__ import annotations

import posixpath
import re

from gitgates.record import Record

_JS_TEST = r"(?<![\w.$])(?:it|test|specify|xit|xtest|fit)"
_QUOTE = r"\s*\(\s*(?P<quote>[\"'`])"
_CODES = r"(?P<codes>[\w./@-]+(?:\s*,\s*[\w./@-]+)*)"
_ANYWHERE = ("nosemgrep", r"\bnosemgrep\b(?::\s*" + _CODES + ")?")


class Language(Record):
    """What to look for in one language; regular expressions, with `^` for each line."""

    syntax: str
    tests: tuple[str, ...] = ()  # with a group `name`, or `quote` where the name begins
    asserts: str = ""
    empty: str = ""  # assertions that always hold
    skips: str = ""
    only: str = ""
    suppressions: tuple[tuple[str, str], ...] = ()  # who is told to look away → how
    attributes: tuple[tuple[str, str], ...] = ()
    marks_tests: bool = False  # a test is one by its mark, in whichever file


PYTHON = Language(
    syntax="python",
    tests=(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)\s*\(",),
    asserts=r"^[ \t]*assert\b|(?<!def )\bassert(?:_\w+|[A-Z]\w*)\s*\("
    r"|\bpytest\.(?:raises|warns|fail)\b",
    empty=r"^[ \t]*assert[ \t]+(?:True|1|not False|(?P<same>\d+)[ \t]*==[ \t]*(?P=same))[ \t]*$"
    r"|^[ \t]*assert\b[^\n]*\bor[ \t]+True\b"
    r"|\bassertTrue\([ \t]*True\b|\bassertFalse\([ \t]*False\b",
    skips=r"\bpytest\.mark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)[ \t]*\("
    r"|^[ \t]*@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest[ \t]*\("
    r"|\braise[ \t]+(?:unittest\.)?SkipTest\b|\b__test__[ \t]*=[ \t]*False\b|^collect_ignore",
    suppressions=(
        (
            "noqa",
            r"#\s*(?:ruff:\s*|flake8:\s*)?noqa\b(?::\s*(?P<codes>[A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*))?",
        ),
        ("type: ignore", r"#\s*type:\s*ignore\b(?:\[(?P<codes>[^\]\n]*)\])?"),
        (
            "pyright: ignore",
            r"#\s*(?:based)?pyright:\s*(?:ignore|basic|off)\b(?:\[(?P<codes>[^\]\n]*)\])?",
        ),
        ("mypy", r"#\s*mypy:\s*(?:ignore-errors|disable-error-code|allow-\S+)"),
        ("ty: ignore", r"#\s*ty:\s*ignore\b(?:\[(?P<codes>[^\]\n]*)\])?"),
        ("pyre-ignore", r"#\s*pyre-(?:ignore|fixme)\b"),
        (
            "pylint: disable",
            r"#\s*pylint:\s*(?:disable(?:-next|-msg)?\s*=\s*" + _CODES + "|skip-file)",
        ),
        ("pragma: no cover", r"#\s*pragma:\s*no\s*(?:cover|branch|mutate)\b"),
        ("nosec", r"#\s*nosec\b(?:[:\s]\s*(?P<codes>B\d+(?:[\s,]+B\d+)*))?"),
        _ANYWHERE,
    ),
)
JAVASCRIPT = Language(
    syntax="js",
    tests=(
        _JS_TEST + r"(?:\.(?!each\b|for\b)\w+)*" + _QUOTE,
        _JS_TEST + r"(?:\.\w+)*\.(?:each|for)\b.{0,4000}?[)`]" + _QUOTE,
    ),
    asserts=r"(?<![\w.$])(?:expect|assert)(?:\.\w+)*\s*\(|\.should\b"
    r"|(?<![\w.$])t\.(?:is|not|deepEqual|true|false|truthy|falsy|throws\w*|like|regex|same|equal|ok)\(",
    empty=r"\bexpect\(\s*(?P<same>true|false|1|0)\s*\)\.(?:toBe|toEqual|toStrictEqual)\(\s*(?P=same)\s*\)"
    r"|\bexpect\(\s*true\s*\)\.(?:toBeTruthy|to\.be\.true)\b|(?<![\w.$])assert(?:\.ok)?\(\s*true\s*\)",
    skips=r"(?<![\w.$])(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo|fails|failing|fixme|skipIf)\b"
    r"|(?<![\w.$])x(?:it|test|describe|context|specify)\s*[(.]|\bthis\.skip\s*\(\)|(?<![\w.$])pending\s*\(",
    only=r"(?<![\w.$])(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.only\b"
    r"|(?<![\w.$])f(?:it|describe|context)\s*[(.]",
    suppressions=(
        (
            "eslint-disable",
            (
                r"\beslint-disable(?:-next-line|-line)?\b"
                r"(?:[ \t]+(?P<codes>[@\w/][\w/@-]*(?:\s*,\s*[@\w/][\w/@-]*)*))?"
            ),
        ),
        ("ts-ignore", r"@ts-(?:ignore|nocheck|expect-error)\b"),
        ("coverage ignore", r"\b(?:istanbul|c8|v8|node:coverage) (?:ignore|disable)\b"),
        ("biome-ignore", r"\bbiome-ignore(?:-\w+)?\s+(?P<codes>[\w/]+)"),
        ("oxlint-disable", r"\boxlint-disable(?:-next-line|-line)?\b"),
        ("tslint:disable", r"\btslint:disable\b"),
        _ANYWHERE,
    ),
)
GO = Language(
    syntax="go",
    tests=(
        r"^func\s+(?P<name>(?:Test|Fuzz|Example)\w*)\s*\(",
        r"^func\s+\([^)\n]*\)\s*(?P<name>Test\w+)\s*\(",
    ),
    asserts=r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(|\b(?:assert|require|is|qt)\.\w+\s*\(",
    empty=r"\b(?:assert|require)\.True\(\s*\w+\s*,\s*true\b",
    skips=r"\b[tbf]\.(?:Skip|Skipf|SkipNow)\s*\(",
    suppressions=(
        ("nolint", r"//\s*nolint\b(?::\s*" + _CODES + ")?"),
        ("lint:ignore", r"//\s*lint:(?:file-)?ignore\s+" + _CODES),
        ("nosec", r"#nosec\b(?:\s+(?P<codes>G\d+(?:[\s,]+G\d+)*))?"),
        ("build ignore", r"^//go:build\s+ignore\b"),
        _ANYWHERE,
    ),
)
RUST = Language(
    syntax="rust",
    tests=(
        (
            r"#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\b[^\]]*\](?:\s*#\[[^\]]*\])*"
            r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const)\s+)*fn\s+(?P<name>\w+)"
        ),
    ),
    asserts=r"\b(?:\w+::)*(?:debug_)?assert\w*!|#\[should_panic\b|\bpanic!",
    empty=r"\bassert!\(\s*true\b|\bassert_eq!\(\s*(?P<same>true|false|\d+)\s*,\s*(?P=same)\s*[,)]",
    skips=r"#\[\s*ignore\b|#\[\s*cfg_attr\([^\]\n]*\bignore\b",
    attributes=(
        (
            "allow",
            r"#!?\[\s*(?:cfg_attr\([^\]\n]*?)?\b(?:allow|expect)\(\s*(?P<codes>[\w:]+(?:\s*,\s*[\w:]+)*)",
        ),
    ),
    suppressions=(_ANYWHERE,),
    marks_tests=True,
)
_JVM_SUPPRESS = (
    r"@(?:file:)?Suppress(?:Warnings|FBWarnings)?\(\s*(?:value\s*=\s*)?\{?\s*(?P<codes>[^)}]*)"
)
JVM = Language(
    syntax="c",
    tests=(
        (
            r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b.{0,800}?"
            r"\b(?:void|fun|Stream<[^>]*>)\s+(?P<name>\w+|`[^`\n]*`)\s*\("
        ),
    ),
    asserts=r"(?<![\w@])(?:assert\w*|verify\w*|fail|expectThrows)\s*[(<{]"
    r"|^[ \t]*assert\b|\bshould(?:Be|Throw|Equal|Not)\w*\b",
    empty=r"\bassertTrue\(\s*true\b|\bassertFalse\(\s*false\b|\bassertEquals\(\s*(?P<same>\w+)\s*,\s*(?P=same)\s*\)",
    skips=r"@(?:Disabled|Ignore|Ignored)\w*\b|@(?:Enabled|Disabled)(?:On|If|For)\w*|\b(?:assumeTrue|assumeFalse|assumeThat)\s*\(",
    suppressions=(
        ("NOSONAR", r"\bNOSONAR\b"),
        ("CHECKSTYLE:OFF", r"\bCHECKSTYLE[: ]*OFF\b"),
        ("noinspection", r"\bnoinspection\s+" + _CODES),
        ("NOPMD", r"\bNOPMD\b"),
        _ANYWHERE,
    ),
    attributes=(
        ("SuppressWarnings", _JVM_SUPPRESS),
        ("Generated", r"@(?:ExcludeFromJacoco\w*|Generated)\b"),
    ),
    marks_tests=True,
)
CSHARP = Language(
    syntax="c",
    tests=(
        (
            r"\[(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod|Property)\b.{0,800}?"
            r"\b(?:void|Task(?:<[^>]*>)?|ValueTask)\s+(?P<name>\w+)\s*[(<]"
        ),
    ),
    asserts=r"\bAssert\.(?!Ignore|Inconclusive|Pass)\w+|\.Should\w*\(|\bVerify\w*\(",
    empty=r"\bAssert\.(?:True|IsTrue)\(\s*true\b|\bAssert\.(?:False|IsFalse)\(\s*false\b|\bAssert\.Pass\(",
    skips=r"\[\s*(?:Fact|Theory)\([^\]\n]*\bSkip\s*=|\[\s*(?:Ignore|Explicit)\b|\bAssert\.(?:Ignore|Inconclusive)\s*\(",
    suppressions=(("NOSONAR", r"\bNOSONAR\b"), ("ReSharper", r"\bReSharper disable\b"), _ANYWHERE),
    attributes=(
        ("pragma warning disable", r"^\s*#pragma\s+warning\s+disable\b(?:[ \t]+" + _CODES + ")?"),
        ("SuppressMessage", r"\[\s*(?:\w+:\s*)?SuppressMessage\([^\]\n]*"),
        ("ExcludeFromCodeCoverage", r"\[\s*ExcludeFromCodeCoverage\b"),
    ),
    marks_tests=True,
)
RUBY = Language(
    syntax="ruby",
    tests=(
        r"^\s*(?:it|specify|example|scenario|test|should|xit|fit)\b\s*\(?\s*(?P<quote>[\"'])",
        r"^\s*def\s+(?P<name>test_\w+[?!]?)",
    ),
    asserts=r"\b(?:expect|is_expected)\b|(?<!def )\b(?:assert|refute)\w*\b"
    r"|\.should(?:_not)?\b|\b(?:must|wont)_\w+",
    empty=r"\bassert[ (]\s*true\b"
    r"|\bexpect\(\s*true\s*\)\.to\s+(?:be\(?\s*true|eq\(?\s*true|be_truthy)",
    skips=r"^\s*(?:skip|pending)\b|^\s*x(?:it|describe|context|specify)\b"
    r"|\b(?:skip|pending):\s|,\s*:(?:skip|pending)\b",
    only=r"^\s*f(?:it|describe|context)\b|\bfocus:\s*true\b|,\s*:focus\b",
    suppressions=(
        ("rubocop:disable", r"\brubocop:(?:disable|todo)\s+" + _CODES),
        ("standard:disable", r"\bstandard:disable\b"),
        (":nocov:", r":nocov:"),
        _ANYWHERE,
    ),
)
PHP = Language(
    syntax="php",
    tests=(
        r"\bfunction\s+(?P<name>test\w*)\s*\(",
        r"#\[Test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:(?:public|final|static)\s+)*function\s+(?P<name>\w+)\s*\(",
        r"^\s*(?:it|test)\(\s*(?P<quote>[\"'])",
    ),
    asserts=r"(?:->|::)(?:assert\w+|expectException\w*|fail)\s*\(|(?<![\w>:$])expect\s*\(",
    empty=r"(?:->|::)assertTrue\(\s*true\b|(?:->|::)assertFalse\(\s*false\b",
    skips=r"(?:->|::)markTest(?:Skipped|Incomplete)\s*\(|->(?:skip|todo)\s*\(|#\[Requires\w+",
    only=r"->only\s*\(",
    suppressions=(
        ("phpcs:ignore", r"\bphpcs:(?:ignore|disable)\w*\b"),
        ("phpstan-ignore", r"@phpstan-ignore\S*"),
        ("psalm-suppress", r"@psalm-suppress\s+" + _CODES),
        ("codeCoverageIgnore", r"@codeCoverageIgnore\w*"),
        _ANYWHERE,
    ),
)
SHELL = Language(
    syntax="hash",
    tests=(r"^\s*@test\s+(?P<quote>[\"'])", r"^(?:function\s+)?(?P<name>test\w*)\s*\(\)"),
    asserts=r"^\s*(?:\[\[?\s|!?\s*test\s|assert\w*\b|refute\w*\b|run\s+!)",
    empty=r"^\s*\[\[?\s+(?P<same>\d+)\s+(?:-eq|==?)\s+(?P=same)\s+\]",
    skips=r"^\s*skip\b",
    suppressions=(("shellcheck disable", r"#\s*shellcheck\s+disable=" + _CODES), _ANYWHERE),
)
PLAIN = Language(
    syntax="hash",
    suppressions=(
        ("hadolint ignore", r"#\s*hadolint\s+(?:global\s+)?ignore=" + _CODES),
        ("yamllint disable", r"#\s*yamllint\s+disable\b"),
        ("checkov:skip", r"#\s*(?:checkov|kics-scan|tfsec|trivy)[: ](?:skip|ignore)\S*"),
        ("zizmor: ignore", r"#\s*zizmor:\s*ignore\b"),
        ("shellcheck disable", r"#\s*shellcheck\s+disable=" + _CODES),
        _ANYWHERE,
    ),
)

_SUFFIXES = {
    **dict.fromkeys(("py", "pyi", "pyw"), PYTHON),
    **dict.fromkeys(
        ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"), JAVASCRIPT
    ),
    "go": GO,
    "rs": RUST,
    **dict.fromkeys(("java", "kt", "kts", "groovy", "scala"), JVM),
    "cs": CSHARP,
    **dict.fromkeys(("rb", "rake"), RUBY),
    "php": PHP,
    **dict.fromkeys(("sh", "bash", "zsh", "ksh", "bats"), SHELL),
    **dict.fromkeys(("yml", "yaml", "tf", "mk", "dockerfile"), PLAIN),
}
_NAMES = {"Makefile": PLAIN, "Dockerfile": PLAIN, "Containerfile": PLAIN, "Rakefile": RUBY}
_TEST_NAME = re.compile(
    r"(?:test\w*|\w+_tests?|tests|conftest)\.py$"
    r"|.+\.(?:test|spec|e2e|cy)\.[cm]?[jt]sx?$"
    r"|.+_test\.go$"
    r"|.+(?:Tests?|TestCase|IT|Spec)\.(?:java|kt|groovy|scala|cs|php)$|Test[A-Z]\w*\.(?:java|kt|cs)$"
    r"|.+_(?:spec|test)\.rb$|test_.+\.rb$"
    r"|.+\.bats$|test[-_].+\.(?:sh|bash)$|.+[-_]test\.(?:sh|bash)$"
)
_TEST_FOLDER = re.compile(
    r"(?:^|/)(?:__tests__|spec|tests?|e2e)/(?:.*/)?[^/]+\.(?:[cm]?[jt]sx?|rb|sh|rs)$"
)


def language_of(path: str) -> Language | None:
    """Return the language that a file is written in, by its name; None where we know none."""
    name = posixpath.basename(path)
    return _NAMES.get(name) or _SUFFIXES.get(name.rpartition(".")[2].lower())


def is_test_name(path: str) -> bool:
    """Tell whether a runner finds tests in a file by its name."""
    name = posixpath.basename(path)
    return bool(_TEST_NAME.match(name) or _TEST_FOLDER.search(path))
