"""Compute the significance of a change: its files, weighted by kind. Pure.

`weigh` counts lines and files by kind and leaves out what nobody reads; docs/explanation/review.md
argues for the numbers. A file's lines are the larger of what was added and removed: twenty lines
that were rewritten are twenty, not forty. The path of a file determines what it is: code,
tests, documentation, or nothing that anybody reads.
"""

from __future__ import annotations

from gitgates.core.record import Record
from gitgates.engine import match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from gitgates.core.agent_types import FileDifference
    from gitgates.features.review.config import Review

    Layer: TypeAlias = list[tuple[bool, list[match.Pattern], dict[str, bool]]]


_KINDS = ("code", "tests", "documentation")
_MOST_NAMED = 3  # critical files, in a sentence
_NOT_BELIEVED = "!"


class Kind(Record):
    """The kind of a file, by its name and the configured patterns."""

    kind: str  # code, tests, documentation
    critical: bool = False
    left_out: str = ""  # why it does not count: a pattern of `ignore`, or of what is generated


class Weighed(Record):
    """The weight of one changed file, and why."""

    path: str
    kind: str  # code, tests, documentation; empty: it does not count
    added: int
    removed: int
    lines: float  # weighted
    files: float  # weighted
    why: str  # in words: the kind and the weight, or why it does not count
    critical: bool = False

    @property
    def counts(self) -> bool:
        """Return whether it counts at all."""
        return bool(self.kind) or self.critical


class Significance(Record):
    """The significance of a change."""

    files: tuple[Weighed, ...]  # those that weigh most first
    lines: float  # weighted
    file_count: float  # weighted
    min_lines: float
    min_files: float
    why: str  # the arithmetic, in words

    @property
    def significant(self) -> bool:
        """Return whether it reaches a limit."""
        reached = self.lines >= self.min_lines or self.file_count >= self.min_files
        return any(file.critical for file in self.files) or (self.counts and reached)

    @property
    def counts(self) -> bool:
        """Return whether it counts at all."""
        return any(file.counts for file in self.files)


def weigh(
    changes: tuple[FileDifference, ...], kinds: Mapping[str, Kind], review: Review
) -> Significance:
    """Return the significance of a change. `kinds` has each path, and old paths that are known.

    A renamed file counts as the heavier of the kinds of its two paths, so moving it hides
    nothing.
    """
    weights = dict(zip(_KINDS, review.weights, strict=True))
    weighed = [_weigh_file(change, _kind_of(change, kinds, weights), weights) for change in changes]
    weighed.sort(
        key=lambda file: (not file.critical, not file.counts, -file.lines, -file.files, file)
    )
    significance = Significance(
        files=tuple(weighed),
        lines=round(sum(file.lines for file in weighed), 6),
        file_count=round(sum(file.files for file in weighed), 6),
        min_lines=review.min_lines,
        min_files=review.min_files,
        why="",
    )
    return significance._replace(why=_arithmetic(significance))


def _kind_of(
    change: FileDifference, kinds: Mapping[str, Kind], weights: Mapping[str, float]
) -> Kind:
    current = kinds[change.path]
    previous = kinds.get(change.was) if change.was else None
    if previous is None:
        return current
    critical = current.critical or previous.critical
    heavier = max((current, previous), key=lambda kind: (not kind.left_out, weights[kind.kind]))
    return heavier._replace(critical=critical)


def _weigh_file(change: FileDifference, file_kind: Kind, weights: Mapping[str, float]) -> Weighed:
    kind, weight = file_kind.kind, weights[file_kind.kind]
    why = _reason(change, file_kind, weight)
    if not file_kind.critical and (left_out := _left_out(change, file_kind, weight)):
        kind, weight, why = "", 0.0, f"left out: {left_out}"
    return Weighed(
        path=change.path,
        kind=kind,
        added=change.added,
        removed=change.removed,
        lines=round(_lines(change) * weight, 6),
        files=weight if _lines(change) or change.edited is None else 0.0,
        why=why,
        critical=file_kind.critical,
    )


def _lines(change: FileDifference) -> int:
    return max(change.added, change.removed) if change.edited is None else change.edited


def _reason(change: FileDifference, file_kind: Kind, weight: float) -> str:
    name = f"{file_kind.kind}, weight {weight:.10g}"
    words = [f"critical ({name})" if file_kind.critical else name]
    if change.binary:
        words.append("binary")
    if change.submodule:
        words.append("submodule")
    if change.edited == 0:
        words.append("only line endings differ")
    if change.was:
        words.append(f"renamed from `{change.was}`")
    if change.attribute.startswith(_NOT_BELIEVED):
        attribute = change.attribute.removeprefix(_NOT_BELIEVED)
        words.append(f"{attribute} is ignored, as the session may have set it itself")
    return ", ".join(words)


def _left_out(change: FileDifference, file_kind: Kind, weight: float) -> str:
    if file_kind.left_out:
        return file_kind.left_out
    if change.attribute and not change.attribute.startswith(_NOT_BELIEVED):
        return f".gitattributes says {change.attribute}"
    if change.same_content:
        return "renamed only" if change.was else "only its mode changed"
    if change.edited == 0 and change.path.endswith(".ipynb"):
        return "no cell source differs"
    has_no_lines = change.binary or change.submodule or change.status == "T"
    if not (change.added or change.removed or has_no_lines):
        if change.was:
            return "renamed, only white space changed"
        return "only white space" if change.status == "M" else "contains only white space"
    return "" if weight else f"{file_kind.kind}, weight 0"


def _arithmetic(significance: Significance) -> str:
    if not significance.counts:
        return "nothing relevant has changed"
    lines = _counted(significance.lines, "line", significance.min_lines)
    files = _counted(significance.file_count, "file", significance.min_files)
    critical = [f"`{file.path}`" for file in significance.files if file.critical]
    if not critical:
        return f"{lines}, {files}"
    from gitgates.core.clean import first_few  # most changes have no critical file

    names = first_few(critical, _MOST_NAMED)
    return f"{names} {'is' if len(critical) == 1 else 'are'} critical; {lines}, {files}"


def _counted(amount: float, noun: str, threshold: float) -> str:
    plural = "" if amount == 1 else "s"
    return f"{amount:.10g} weighted {noun}{plural} (threshold {threshold:.10g})"


def kinds_of(paths: tuple[str, ...], review: Review) -> dict[str, Kind]:
    """Return path → its kind.

    In this order: `critical`, `ignore`, what is generated, tests, documentation, code. Configured
    patterns take precedence over the built-in ones.
    """
    ignored, generated = _parse(review.ignore), _parse(review.generated)
    tests, documentation = _parse(review.tests), _parse(review.documentation)
    critical = _parse(review.critical)

    def left_out(path: str, name: str, folders: frozenset[str]) -> str:
        if _says(ignored, path):
            return "a pattern of `ignore`"
        is_generated = _says(generated, path)
        if is_generated is None:
            return _generated(path, name, folders)
        return "a pattern of `generated`" if is_generated else ""

    def readable(path: str, name: str, folders: frozenset[str]) -> str:
        of_tests, of_documentation = _says(tests, path), _says(documentation, path)
        if of_tests or of_documentation:
            return "tests" if of_tests else "documentation"
        if of_tests is None and _is_test(name, folders):
            return "tests"
        is_read = of_documentation is None and _is_documentation(name, folders)
        return "documentation" if is_read else "code"

    kinds = {}
    for path in paths:
        folder, _slash, name = path.rpartition("/")
        parts = path, name, frozenset(folder.split("/"))
        is_critical = bool(_says(critical, path))
        kinds[path] = Kind(
            kind=readable(*parts),
            critical=is_critical,
            left_out="" if is_critical else left_out(*parts),
        )
    return kinds


def _parse(lines: tuple[str, ...]) -> Layer:
    """Return patterns for `_says`, the last one first, each with a cache of folders."""
    patterns = reversed([*map(match.parse, lines)])
    return [(not pattern.negated, [pattern._replace(negated=False)], {}) for pattern in patterns]


def _says(layer: Layer, path: str) -> bool | None:
    """Return whether patterns select a path; None if none matches it or a folder above.

    The last one that does decides. Unlike in gitignore(5), what lies below a folder can be taken
    out again: the built-in lists select folders, and there would be no other way.
    """
    for selects, pattern, folders in layer:
        if match.matches(path, pattern, folders):
            return selects
    return None


def _generated(path: str, name: str, folders: frozenset[str]) -> str:
    """Return why a file counts as generated; empty if it does not."""
    if name in LOCK_NAMES:
        return "lock file"
    is_below = not VENDORED_FOLDERS.isdisjoint(folders)
    if is_below or path.startswith(VENDORED_STARTS):
        return "vendored"
    if name.endswith(SNAPSHOT_ENDINGS) and not SNAPSHOT_FOLDERS.isdisjoint(folders):
        return "generated"
    by_name = name in GENERATED_NAMES or name.startswith(GENERATED_PREFIXES)
    if by_name or name.endswith(GENERATED_ENDINGS):
        return "generated"
    return "" if GENERATED_FOLDERS.isdisjoint(folders) else "generated"


def is_test_name(path: str) -> bool:
    """Return whether a runner finds tests in a file: by its name, or by a folder and its suffix."""
    folder, _slash, name = path.rpartition("/")
    is_found = name.endswith(RUNNER_ENDINGS) and not RUNNER_FOLDERS.isdisjoint(folder.split("/"))
    return is_found or _has_test_name(name)


def _has_test_name(name: str) -> bool:
    if name in TEST_NAMES or name.endswith(TEST_ENDINGS):
        return True
    if name.startswith(TEST_STARTS):
        return name.endswith(TEST_ENDINGS_AFTER_START)
    return name[:4] == "Test" and name[4:5].isupper() and name.endswith(CLASS_ENDINGS)


def _is_test(name: str, folders: frozenset[str]) -> bool:
    return not TEST_FOLDERS.isdisjoint(folders) or _has_test_name(name)


def _is_documentation(name: str, folders: frozenset[str]) -> bool:
    lower = name.lower()
    if lower.endswith(DOCUMENTATION_ENDINGS):
        return True
    stem, dot, ending = name.partition(".")
    if stem.upper() in DOCUMENTATION_STEMS:
        return dot + ending.lower() in DOCUMENTATION_STEM_ENDINGS
    if DOCUMENTATION_FOLDERS.isdisjoint(folders):
        return False
    return not (name in CODE_NAMES or lower.endswith(CODE_ENDINGS))


# What files are by their names: the built-in lists that the configuration is laid over.
#
# Kept as sets and endings, and not as patterns: thousands of paths are classified in milliseconds.
# A name that is missing here makes a change look larger than it is, and one pattern fixes that; a
# name too many hides code. So there is no `build/`, `dist/`, `gen/` or `*.map` among what is left
# out, and no plain `*.txt` (requirements.txt) or `*.json` among documentation.

LOCK_NAMES = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
        *("bun.lock", "bun.lockb", "deno.lock", "rush-lock.json"),
        *("poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "pixi.lock", "pylock.toml"),
        *("conda-lock.yml", "conda-lock.yaml"),
        *("Cargo.lock", "go.sum", "go.work.sum", "Gopkg.lock", "glide.lock"),
        *("Gemfile.lock", "gems.locked", "composer.lock", "symfony.lock", "mix.lock"),
        *("rebar.lock", "pubspec.lock", "Podfile.lock", "Cartfile.resolved", "Package.resolved"),
        *("packages.lock.json", "paket.lock", "project.assets.json", "gradle.lockfile"),
        *("buildscript-gradle.lockfile", "flake.lock", ".terraform.lock.hcl", "Chart.lock"),
        *("stack.yaml.lock", "cabal.project.freeze", "MODULE.bazel.lock", "maven_install.json"),
        *("dub.selections.json", "shard.lock", "spago.lock", "renv.lock", "packrat.lock"),
        *("lazy-lock.json", "devbox.lock", "mise.lock", "conan.lock", "vcpkg-lock.json"),
        *("devenv.lock", "Puppetfile.lock", "Berksfile.lock", "Brewfile.lock.json"),
    }
)

GENERATED_NAMES = frozenset({".pnp.cjs", ".pnp.loader.mjs"})
GENERATED_PREFIXES = ("zz_generated.",)
GENERATED_ENDINGS = (
    *(".min.js", ".min.mjs", ".min.css", ".js.map", ".mjs.map", ".cjs.map", ".ts.map", ".css.map"),
    *("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi", ".pb.go", ".pb.gw.go", ".pb.cc"),
    *(".pb.h", ".pb.swift", ".pb.dart", ".pbenum.dart", ".pbjson.dart", ".pbserver.dart"),
    *("_pb.js", "_pb.d.ts", "_pb.ts", "_grpc_web_pb.js", "_grpc_pb.js"),
    *(".g.dart", ".freezed.dart", ".gr.dart", ".g.cs", ".g.i.cs", ".designer.cs", ".Designer.cs"),
    *("_generated.go", ".generated.go", ".generated.ts", ".generated.js", ".generated.cs"),
)
VENDORED_FOLDERS = frozenset(
    {
        *("node_modules", "bower_components", "jspm_packages", "web_modules"),
        *("vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "3rdparty"),
        *("site-packages", "Pods", "elm-stuff", ".terraform", ".pnpm-store", "Godeps"),
    }
)
# What test runners write: Jest, Vitest, syrupy; insta.
SNAPSHOT_FOLDERS = frozenset({"__snapshots__", "snapshots"})
SNAPSHOT_ENDINGS = (".snap", ".ambr")
GENERATED_FOLDERS = frozenset({"__generated__", "__pycache__"})
# Above anything: what yarn commits to repositories.
VENDORED_STARTS = (".yarn/cache/", ".yarn/releases/", ".yarn/plugins/", ".yarn/sdks/")

TEST_FOLDERS = frozenset(
    {
        *("test", "tests", "__tests__", "__test__", "spec", "specs", "testdata", "test-data"),
        *("test_data", "__snapshots__", "__mocks__", "__fixtures__", "e2e", "cypress"),
        *("androidTest", "unitTest", "commonTest", "jvmTest", "integration-tests"),
    }
)
TEST_NAMES = frozenset({"conftest.py", "tests.py", "tests.rs"})
TEST_STARTS = ("test_", "test-")
TEST_ENDINGS_AFTER_START = (
    *(".py", ".rb", ".c", ".cc", ".cpp", ".sh", ".bash", ".lua", ".jl", ".ml", ".zig"),
)
CLASS_ENDINGS = (".java", ".kt", ".cs")  # of TestName
# Where a runner takes any file of these for a test.
RUNNER_FOLDERS = frozenset({"__tests__", "spec", "test", "tests", "e2e"})
RUNNER_ENDINGS = (
    *(".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".rb", ".sh", ".rs"),
)
TEST_ENDINGS = (
    *[
        f"_test.{suffix}"
        for suffix in ("py", "go", "rb", "rs", "c", "cc", "cpp", "dart", "exs", "clj")
    ],
    *[f"_test.{suffix}" for suffix in ("ts", "tsx", "js", "jsx", "sh", "lua", "ml", "erl", "zig")],
    *[f"_spec.{suffix}" for suffix in ("rb", "lua", "cr", "js", "ts")],
    *("_tests.py", "_test.bash", "-test.sh", "-test.bash"),
    *("_unittest.cc", "_unittest.cpp", "_unittest.py", "_SUITE.erl"),
    *[
        f".{word}.{suffix}"
        for word in ("test", "spec", "cy", "e2e")
        for suffix in ("ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs", "vue", "svelte")
    ],
    *[f"Test.{suffix}" for suffix in ("java", "kt", "cs", "php", "scala", "groovy", "swift")],
    *[f"Tests.{suffix}" for suffix in ("java", "kt", "cs", "swift", "fs")],
    *[f"Spec.{suffix}" for suffix in ("scala", "kt", "groovy", "swift", "hs")],
    *[f"TestCase.{suffix}" for suffix in ("java", "kt", "groovy", "scala", "cs", "php")],
    *("IT.java", "IT.kt", "IT.groovy", "Tests.php", ".snap", ".bats", ".feature", ".golden"),
)

# Prose, pictures and sounds, fonts, tables, translations. Compared in lower case.
DOCUMENTATION_ENDINGS = (
    *(".md", ".mdx", ".markdown", ".rst", ".adoc", ".asciidoc", ".textile", ".rdoc", ".org"),
    *(".pdf", ".drawio", ".puml", ".plantuml", ".mmd", ".docx", ".odt", ".pptx", ".xlsx"),
    *(".svg", ".png", ".jpg", ".jpeg", ".gif", ".ico", ".webp", ".avif", ".bmp", ".tiff", ".icns"),
    *(".psd", ".sketch", ".fig"),
    *(".mp3", ".mp4", ".webm", ".mov", ".wav", ".ogg", ".flac"),
    *(".woff", ".woff2", ".ttf", ".otf", ".eot"),
    *(".csv", ".tsv", ".jsonl", ".ndjson", ".geojson", ".parquet", ".log"),
    *(".po", ".pot", ".xliff", ".xlf"),
)
# The part of a name before its first dot, in upper case.
DOCUMENTATION_STEMS = frozenset(
    {
        *("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS", "UNLICENSE"),
        *("README", "CHANGELOG", "CHANGES", "HISTORY", "NEWS", "RELEASES", "UPGRADING"),
        *("AUTHORS", "CONTRIBUTORS", "MAINTAINERS", "THANKS", "TODO", "ROADMAP"),
        *("CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY", "SUPPORT", "GOVERNANCE"),
    }
)
DOCUMENTATION_STEM_ENDINGS = ("", ".txt", ".html", ".cff")
DOCUMENTATION_FOLDERS = frozenset({"docs", "doc", "documentation"})
# In those folders are programs, too: a site, an extension, an example that people copy.
CODE_ENDINGS = (
    *(".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"),
    *(".go", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".gradle", ".c", ".cc", ".cpp"),
    *(".h", ".hh", ".hpp", ".m", ".mm", ".swift", ".cs", ".fs", ".vb", ".rb", ".php", ".pl"),
    *(".pm", ".lua", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".sql", ".tf"),
    *(".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".dart", ".jl", ".r", ".zig", ".nix", ".el"),
    *(".mk", ".toml", ".yml", ".yaml", ".ipynb", ".proto"),
)
CODE_NAMES = frozenset({"Makefile", "Dockerfile", "Rakefile", "Gemfile", "package.json"})
