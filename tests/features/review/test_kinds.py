"""What a file is taken for by its path."""

from __future__ import annotations

import itertools

from config_support import table
from each_case import each_case

from gitgates.engine.plan import match
from gitgates.features.review import significance
from gitgates.features.review.config import Weighting
from gitgates.features.review.significance import Kind, _parse, _selects, kinds_of

CODE = (
    *("src/app.py", "main.go", "Makefile", "Dockerfile", "package.json", "pyproject.toml"),
    *("requirements.txt", "constraints.txt", "CMakeLists.txt", "robots.txt", "schema.sql"),
    *(".github/workflows/ci.yml", ".gitignore", ".gitattributes", "CODEOWNERS", "data.json"),
    *("docs/conf.py", "docs/src/App.tsx", "doc/Makefile", "docs/mkdocs.yml", "readme.py"),
    *("build/release.py", "dist/index.js", "gen/make.go", "lock.py", "locks/a.py", "src/map.py"),
    *("license_check.py", "src/license.ts", "changes.py", "news/models.py", "security.py"),
    *("latest.py", "contest/a.py", "src/testing.py", "attest.go", "inspect/spec.ts", "Test.md.py"),
    *("src/Testament.java", "Test.java.txt.c", "src/TestSums.go"),
    *(
        "vendors.py",
        "src/vendoring/a.py",
        "test_plan/a.c",
        "test_data.json",
        "min.js",
        "x.map",
        "_pb2.pyx",
    ),
    *("internal/generated/a.go", "config.lock", "Manifest.toml", "go.mod"),
)
TESTS = (
    *("tests/a.py", "pkg/test/a.c", "a/__tests__/b.js", "spec/models/a_spec.rb", "conftest.py"),
    *("src/test_app.py", "src/app_test.py", "pkg/a_test.go", "web/a.test.ts", "web/b.spec.jsx"),
    *("src/test/java/A.java", "a/FooTest.java", "a/FooTests.cs", "FooSpec.scala", "e2e/a.ts"),
    *("tests/README.md", "tests/fixtures/a.png", "app/tests.py", "a/__snapshots__/help.ts"),
    *(
        "app/sums_tests.py",
        "src/TestSums.java",
        "SumTestCase.php",
        "bin/test-run.sh",
        "a-test.bash",
    ),
    *("testdata/in.json", "a.bats", "x.feature", "core/tests.rs", "docs/tests/a.md"),
)
DOCUMENTATION = (
    *("README", "README.md", "readme.TXT", "LICENSE", "LICENSE.txt", "CHANGELOG.rst", "NOTICE"),
    *("docs/guide.txt", "docs/index.html", "a/doc/x", "notes.adoc", "CLAUDE.md", "SECURITY.md"),
    *("assets/logo.PNG", "a.svg", "font.woff2", "table.csv", "locale/de.po", "CITATION.csv"),
)
GENERATED = "generated or vendored"
LEFT_OUT = (
    "package-lock.json",
    "web/yarn.lock",
    "pnpm-lock.yaml",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "Cargo.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
    "flake.lock",
    "Package.resolved",
    "gradle.lockfile",
    ".terraform.lock.hcl",
    "vendor/a.go",
    "node_modules/x/index.js",
    "web/node_modules/a.ts",
    "third_party/a/b.c",
    "src/pip/_vendor/x.py",
    "ios/Pods/a.m",
    ".yarn/releases/yarn.cjs",
    "tests/vendor/a.js",
    "docs/vendor/x.md",
    "vendor/README.md",
    "a.min.js",
    "a.min.css",
    "app.js.map",
    "x_pb2.py",
    "x_pb2_grpc.py",
    "api/a.pb.go",
    "lib/a.g.dart",
    "Form.Designer.cs",
    "zz_generated.deepcopy.go",
    "a_generated.go",
    "src/__generated__/q.ts",
    ".pnp.cjs",
    "tests/a_pb2.py",
    "a/__snapshots__/b.snap",
    "tests/__snapshots__/a.ambr",
    "src/snapshots/x__y.snap",
)


def kind(path: str, review: Weighting | None = None) -> Kind:
    return kinds_of((path,), review or table(Weighting))[path]


@each_case("path", CODE)
def test_code(path: str) -> None:
    assert kind(path) == Kind("code")


@each_case("path", TESTS)
def test_tests(path: str) -> None:
    assert kind(path) == Kind("tests")


@each_case("path", DOCUMENTATION)
def test_documentation(path: str) -> None:
    assert kind(path) == Kind("documentation")


@each_case("path", LEFT_OUT)
def test_left_out(path: str) -> None:
    assert kind(path).left_out == GENERATED


def test_patterns_are_laid_over_the_built_in_ones() -> None:
    review = table(
        Weighting,
        tests=("checks/", "!spec/"),
        documentation=("*.json", "!package.json", "!/docs/", "tests/data/"),
        generated=("*.gen.py", "!keep.gen.py", "/out/", "!/out/own/", "!vendor/ours/", "!go.sum"),
        ignore=("scratch/", "!scratch/keep.py"),
        critical=("/auth/", "!/auth/docs/"),
    )
    expected = {
        "checks/a.py": Kind("tests"),
        "spec/openapi.rs": Kind("code"),
        "spec/a_test.go": Kind("code"),  # whatever it is called: it is in spec/
        "tests/a.py": Kind("tests"),
        "data/a.json": Kind("documentation"),
        "package.json": Kind("code"),
        "docs/a.md": Kind("code"),
        "other/docs/a.md": Kind("documentation"),
        "tests/data/a.py": Kind("documentation"),
        "a.gen.py": Kind("code", left_out=GENERATED),
        "keep.gen.py": Kind("code"),
        "out/a.py": Kind("code", left_out=GENERATED),
        "out/own/a.py": Kind("code"),
        "vendor/ours/a.js": Kind("code"),
        "vendor/theirs/a.js": Kind("code", left_out=GENERATED),
        "go.sum": Kind("code"),
        "scratch/a.py": Kind("code", left_out="ignored"),
        "scratch/keep.py": Kind("code"),
        "auth/login.py": Kind("code", critical=True),
        "auth/docs/a.md": Kind("documentation"),
        "auth/uv.lock": Kind("code", critical=True),
        "lib/auth/a.py": Kind("code"),
    }
    assert kinds_of(tuple(expected), review) == expected


def test_a_whole_built_in_list_of_folders_can_be_taken_out() -> None:
    assert kind("a/vendor/b.js", table(Weighting, generated=("!vendor/",))) == Kind("code")
    assert (
        kind("node_modules/b.js", table(Weighting, generated=("!vendor/",))).left_out == GENERATED
    )


def test_names_that_are_no_text_do_no_harm() -> None:
    names = ("\udcff/\n.py", " ", 'a"b/tests/c', ":(glob)**", "*.md")
    assert [kind(name).kind for name in names] == [
        *("code", "code", "tests", "code", "documentation")
    ]


def test_they_match_as_git_does() -> None:
    """Names and endings are looked up, and not matched; the answers are the same."""
    lists = (
        *(
            tuple(text.split())
            for text in (significance.GENERATED, significance.TESTS, significance.DOCUMENTATION)
        ),
        ("*", "!*.md/", "docs", "!/docs/a", "**/x*", "\\!odd", "!a?c", "*"),
    )
    names = ("docs", "x.md", "a", "abc", ".yarn", "cache", "test", "Makefile", "!odd", "x.test.ts")
    paths = ["/".join(parts) for size in (1, 2) for parts in itertools.product(names, repeat=size)]
    for lines in lists:
        runs = _parse(lines)
        for path in paths:
            last = next((line for line in reversed(lines) if _matches(line, path)), None)
            expected = None if last is None else not last.startswith("!")
            assert _selects(runs, path) is expected, (path, last)


def _matches(line: str, path: str) -> bool:
    return match.matches(path, [match.parse(line)._replace(negated=False)])
