"""Signs that a change weakens the checks.

A row says in which files to look for a sign, and what was added, removed, lowered or raised there.
All are regular expressions, in which ^ and $ match at line ends; several for one sign are
alternatives, and a word in capitals stands for a pattern in `SHARED`. Two matches are the same if
their group `name` is (without one: the whole match). A match that is now in another file was moved,
and one for which another match in the same file stands in was replaced: neither is a finding.
"""

from __future__ import annotations

SHARED = {
    "TESTS": r"(?:(?:^|/)(?:tests?[_-][^/]*|[^/]*[_.-](?:tests?|spec|cy|e2e)|[^/]*(?:Tests?|TestCase|Spec|IT))\.\w+$|\.bats$|(?:^|/)(?:__tests__|spec|e2e)/|(?:^|/)tests?/.*\.(?:[cm]?[jt]sx?|rb|rs|sh)$)",
    "SOURCES": r"(?:\.(?:pyi?|[cm]?[jt]sx?|vue|svelte|go|rs|java|kts?|groovy|scala|cs|rb|rake|php|sh|bash|zsh)$)",
    "CI": r"(?:^\.(?:github/(?:workflows|actions)|circleci|buildkite|woodpecker|gitlab|forgejo|gitea|ci)/|(?:^|/)(?:\.gitlab-ci|\.travis|azure-pipelines|bitbucket-pipelines|\.drone|\.woodpecker|appveyor|action)\.ya?ml$|^Jenkinsfile$)",
    "RECIPES": r"(?:(?:^|/)(?:GNUmakefile|[Mm]akefile|\.?[Jj]ustfile|Rakefile|Taskfile\.ya?ml|tox\.ini|noxfile\.py|(?:package|composer)\.json|mise\.toml|\.pre-commit-config\.yaml|\.?lefthook\.ya?ml)$|\.mk$|(?:^|/)(?:\.?ci|scripts?|tools|hack|bin|\.husky)/[^.]+(?:\.(?:sh|bash|zsh))?$|(?:^|/)(?:run[-_])?(?:tests?|checks?|lint|ci|verify)\.(?:sh|bash)$)",
    "SETTINGS": r"(?:(?:^|/)(?:pyproject|Cargo|\.?ruff|\.?clippy|deny)\.toml$|(?:^|/)(?:setup\.cfg|tox\.ini|\.?(?:mypy|pytest)\.ini|\.flake8|\.coveragerc|\.?pylintrc)$|(?:^|/)(?:[tj]sconfig[\w.-]*|package|\.eslintrc|biome|deno|jest\.config|\.nycrc|pyrightconfig)\.jsonc?$|(?:^|/)\.?(?:golangci|rubocop\w*|eslintrc|swiftlint|stylelintrc|codecov|codeclimate|yamllint|markdownlint|detekt)\.ya?ml$|(?:^|/)(?:eslint|jest|vitest|playwright|karma|stylelint|cypress)\.config\.[cm]?[jt]s$|(?:phpunit|psalm)\.xml(?:\.dist)?$|phpstan\.neon(?:\.dist)?$)",
    # A line that is no comment, and does not install a tool or just mention its name.
    "COMMAND": r"^(?![ \t]*(?:#|//))(?![^\n]*(?:\b(?:install|add|apt-get|echo|printf|which|name|rev|uses)\b|--(?:version|fix|write)\b))",
    "TOOL": r"(?:(?<![\w.])(?<![\w-]-)(?:pytest|unittest|tox|nox|ruff(?! format\b)|mypy|(?:based)?pyright|flake8|pylint|bandit|eslint|tsc|jest|vitest|mocha|playwright|cypress|biome|stylelint|golangci-lint|staticcheck|govulncheck|rspec|rubocop|phpunit|phpstan|psalm|ctest|gitgates|pre-commit|shellcheck|hadolint|yamllint|actionlint|semgrep|gitleaks|trivy|bats|(?:npm|pnpm|yarn|bun)(?: run)? [\w:-]*(?:test|lint|check|verify)[\w:-]*|go (?:test|vet)|(?:dotnet|mix|bazel|swift|deno) test|cargo (?:test|clippy|nextest|check|audit|deny))(?![\w./-]))",
    # A list, in brackets or as lines that begin with a dash.
    "LISTED": r"^[ \t]*(?P<name>[\w.-]*",
    "ENTRIES": r"[\w-]*)\s*[:=]\s*(?P<number>\[[^\]]*\]|(?:\n?[ \t]*- [^\n]*)+)",
}

# (what, way, files, expressions, what a match may stand in for)
SIGNS: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    (
        "test removed",
        "removed",
        r"TESTS|\.(?:rs|java|kt|cs|php)$",
        (
            r"^[ \t]*(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)",
            r"""^[ \t]*(?:it|test|specify|example|scenario)(?:\.\w+)*[ \t(]+["'`](?P<name>[^\n]+?)["'`]""",
            r"^func\s+(?:\([^)\n]*\)\s*)?(?P<name>(?:Test|Fuzz|Example)\w*)\s*\(",
            r"^[ \t]*#\[(?:\w+::)*(?:test|rstest)\b[^\]]*\](?:\s*#\[[^\]]*\]){0,8}\s*(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)",
            r"^[ \t]*(?:@(?:Test|ParameterizedTest|RepeatedTest|TestFactory)|\[(?:Fact|Theory|Test|TestCase|TestMethod))\b(?:[^\n]*\n){0,8}?[^\n]*\b(?:void|fun|Task)\s+(?P<name>\w+|`[^`\n]*`)\s*\(",
            r"\bfunction\s+(?P<name>test\w*)\s*\(",
            r"^[ \t]*#\[Test\b[^\]]*\]\s*(?:public\s+)?function\s+(?P<name>\w+)",
            r'^@test\s+"(?P<name>[^"\n]+)"',
        ),
        # A test whose body begins with the same line was renamed.
        "next line",
    ),
    (
        "test skipped",
        "added",
        r"TESTS|\.(?:rs|java|kt|cs|php)$",
        (
            r"^[ \t]*@(?:pytest\.mark\.(?:skip|skipif|xfail)|(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure))\b",
            r"^[ \t]*(?:pytest\.(?:skip|xfail)|self\.skipTest)\(|^pytestmark\b[^\n]*\.(?:skip|xfail)|^[ \t]*__test__\s*=\s*False|^collect_ignore",
            r"^[ \t]*(?:x(?:it|test|describe|context)\b|f(?:it|describe|context)\b|(?:it|test|describe|context|suite)(?:\.\w+)*\.(?:skip|todo|fails|failing|fixme|only)\b)",
            r"^[ \t]*[tbf]\.(?:Skip|Skipf|SkipNow)\(",
            r"^[ \t]*#\[\s*ignore\b|^[ \t]*@(?:Disabled|Ignore)\w*|^[ \t]*\[(?:Ignore|Explicit)\b|\[(?:Fact|Theory)\([^\]\n]*\bSkip\s*=",
            r"^[ \t]*(?:skip|pending)\b|\bmarkTest(?:Skipped|Incomplete)\s*\(",
        ),
        "path",
    ),
    (
        "assertions removed",
        "removed",
        r"TESTS",
        (
            r"^[ \t]*(?:assert\b|(?:\w+\.)?assert\w+[ (]|with pytest\.raises)[^\n]*",
            r"^[ \t]*(?:await\s+)?(?:expect|should)\b[^\n]*",
            r"\b(?:[tbf]\.(?:Error|Fatal|Fail)\w*|(?:require|assert|Assert)\.\w+|\$this->assert\w+|assert\w*!)\s*\([^\n]*",
            r"^[ \t]*\[\[? [^\n]*",
        ),
        "path",
    ),
    (
        "assertion that always holds",
        "added",
        r"TESTS",
        (
            r"^[ \t]*assert (?:True|1|not False)[ \t]*$|^[ \t]*assert\b[^\n]*\bor True\b",
            r"\bassert(?:True|\.True|\.ok|_true)?!?\(\s*[Tt]rue\s*[,)]",
            r"\bexpect\(\s*(?P<name>true|false|0|1)\s*\)\.(?:toBe|toEqual|to\.be)\b[^\n]*\b(?P=name)\b",
        ),
        "path",
    ),
    (
        "warning suppressed",
        "added",
        r"SOURCES",
        (
            r"""(?<!["'`])#\s*(?:ruff: *|flake8: *)?noqa\b(?:: *[A-Z]+\d+(?:[, ]+[A-Z]+\d+)*)?""",
            r"""(?<!["'`])#\s*(?:type|(?:based)?pyright|ty): *ignore\b(?:\[[^\]\n]*\])?|#\s*mypy: *(?:ignore-errors|disable-error-code)|#\s*pyre-(?:ignore|fixme)""",
            r'#\s*pylint: *(?:disable[\w-]* *= *[\w, -]+|skip-file)|#\s*pragma: *no *(?:cover|branch|mutate)|(?<!["])#\s*nosec\b(?: *[BG]\d+)*',
            r"""(?<!["'`])(?://|/\*)\s*(?:(?:eslint|oxlint|tslint|biome)-(?:disable|ignore)(?:-[\w-]+)*(?: +[@\w/-]+(?:, *[@\w/-]+)*)?|@ts-(?:ignore|nocheck|expect-error)|(?:istanbul|c8|v8) ignore)""",
            r"//\s*nolint\b(?::\s*[\w, ]+)?|//\s*lint:(?:file-)?ignore +\S+|^//go:build ignore\b",
            r"^[ \t]*#!?\[\s*(?:allow|expect)\([^)\n]*\)",
            r"^[ \t]*@(?:file:)?Suppress(?:Warnings)?\([^)\n]*\)|\b(?:NOSONAR|NOPMD|CHECKSTYLE[: ]*OFF|noinspection)\b[^\n]*",
            r"^[ \t]*#pragma\s+warning\s+disable\b[^\n]*|\[\s*(?:\w+: *)?SuppressMessage\(|\[\s*ExcludeFromCodeCoverage\b",
            r"#\s*(?:rubocop|standard):(?:disable|todo)\b[^\n]*|#\s*shellcheck\s+disable=\S+|\b(?:phpcs:(?:ignore|disable)|@phpstan-ignore|@psalm-suppress|@codeCoverageIgnore)\S*|\bnosemgrep\b",
        ),
        "path",
    ),
    (
        "threshold lowered",
        "lowered",
        r"SETTINGS|RECIPES|CI",
        (
            r"""(?P<name>[\w-]*(?:fail[_-]under|threshold|minimum|coverage|branches|functions|\blines|statements|target|confidence|min[_-][\w-]+))["']?(?:\s*[:=]\s*|[ \t]+)["']?(?P<number>\d+(?:\.\d+)?)""",
        ),
        "path",
    ),
    (
        "limit raised",
        "raised",
        r"SETTINGS|RECIPES|CI",
        (
            r"""(?P<name>[\w-]*(?:[Mm]ax|complexity)[\w-]*)["']?(?:\s*[:=]\s*|[ \t]+)(?:&\w+ )?["']?(?P<number>\d+(?:\.\d+)?)""",
        ),
        "path",
    ),
    (
        "check's settings relaxed",
        "added",
        r"SETTINGS",
        (
            r"""^[ \t]*(?P<name>[\w."'-]*(?:ignore|exclude|omit|disable|skip|allow|deselect)[\w."'-]*)\s*[:=](?!\s*(?:false|\[\s*\]))""",
            r"""["']?[\w/-]+["']?\s*[:=]\s*\[?["'](?:off|none)["']|^[ \t]*Enabled: *false\b""",
            r"""["']?(?:strict|no[A-Z]\w+|check\w*|disallow_\w+|warn_\w+)["']?\s*[:=]\s*(?:false|False)\b""",
        ),
        "path",
    ),
    (
        "check's settings relaxed",
        "removed",
        r"SETTINGS",
        (
            r"""^[ \t]*["']?(?:strict|no[A-Z]\w+|disallow_\w+|warn_\w+)["']?\s*[:=]\s*(?:true|True)\b""",
            r"^\[(?:tool\.)?(?P<name>ruff|mypy|pytest|coverage|pylint|pyright|bandit|flake8)\b[^\]\n]*\]",
        ),
        "path",
    ),
    # A list's number is that of its entries.
    (
        "check's settings relaxed",
        "raised",
        r"SETTINGS",
        (r"LISTED(?:ignore|exclude|omit|disable|skip|deselect)ENTRIES",),
        "path",
    ),
    (
        "check's settings relaxed",
        "lowered",
        r"SETTINGS",
        (r"LISTED(?:select|enable|include|testpaths)ENTRIES",),
        "path",
    ),
    (
        "file no longer checked",
        "added",
        r"(?:^|/)\.(?:eslint|stylelint|semgrep|gitleaks|trivy|ruff|snyk|markdownlint)ignore$|(?:^|/)\.gitgates-baseline\.json$",
        (r'^[ \t]*(?!#|"version")[^\s{}][^\n]*',),
        "nothing",
    ),
    (
        "check removed",
        "removed",
        r"CI|RECIPES|(?:^|/)pyproject\.toml$",
        (r"COMMAND[^\n]*?(?P<name>TOOL|(?<=id: )[\w-]+)",),
        "path",
    ),
    (
        "check relaxed",
        "added",
        r"CI|RECIPES",
        (
            r"COMMAND[^\n]*TOOL[^\n]*(?:\|\||;)\s*(?:true|:|exit\s+0)(?![\w/])|^(?![ \t]*#)[^\n]*TOOL[^\n]*(?:\|\||;)\s*echo\b",
            r"^[ \t]*(?:@?-@?|- )(?=[^\n:]*$)[^\n]*TOOL(?<!- run)",
            r"^(?![ \t]*#)[^\n]*(?:\bcontinue-on-error: *(?!false)\S+|\ballow_failure: *true|\bif: *false\b|\bset \+e\b|--exit-zero\b|--passWithNoTests\b|\bsuccess_codes\b|\bDskipTests\b)",
            r"COMMAND[^\n]*TOOL[^\n]*\s(?:--(?:ignore|deselect|exclude|skip|extend-ignore)\b|-k )",
            r"^\.IGNORE\b|stages: *\[\s*manual\b",
            r"""["'](?:test|lint|check|ci)["']\s*:\s*["'](?:true|:|exit 0|echo\b)""",
        ),
        "path",
    ),
    (
        "check relaxed",
        "removed",
        r"CI|RECIPES",
        (
            r"COMMAND[^\n]*TOOL[^\n]*?\s(?P<name>--cov\b|--strict\b|-race\b|-Werror\b|-D warnings\b|--max-warnings\b)",
        ),
        "path",
    ),
    (
        "check relaxed",
        "removed",
        r"CI",
        (r"\b(?P<name>pull_request|push|merge_group)\b",),
        "path",
    ),
    (
        "hidden from diffs",
        "added",
        r"(?:^|/)\.gitattributes$",
        (r"^[^#\n]*\s(?:linguist-(?:generated|vendored)(?!=false)|-diff|binary)(?=\s|=|$)",),
        "path",
    ),
    (
        "hooks bypassed",
        "added",
        r"CI|RECIPES|\.(?:sh|bash|zsh|ksh|envrc|env)$",
        (
            r"^(?![ \t]*#)[^\n]*(?:--no-verify\b|\bcore\.hooksPath\b|\bHUSKY=0\b|\bLEFTHOOK=(?:0|false)\b|\bGITGATES=0\b|\bGITGATES_SKIP\s*[=:]|\bSKIP=\S+ +git\b)",
        ),
        "path",
    ),
)
