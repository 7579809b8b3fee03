"""Weigh a change: the lines and files that git counts, by each file's kind.

A file's lines are the larger of those added and removed: twenty rewritten lines count as twenty,
not forty. Its path tells its kind (by patterns here and in the configuration), and each kind has a
weight; docs/how-to/review.md gives the reasons for the numbers. Pure.
"""

from __future__ import annotations

import functools
import itertools

from gitgates.core.clean import first_few
from gitgates.core.record import Record
from gitgates.engine.plan import match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.agent_types import FileDifference
    from gitgates.features.review.config import Weighting

_WEIGHED = ("code", "tests", "documentation")
_LEFT_OUT = {"ignored": "ignored", "generated": "generated or vendored"}
_SPECIAL = frozenset("*?[\\/")  # characters that make a pattern more than a name
_MOST_NAMED = 3  # critical files, in a sentence


class Run(Record):
    """Consecutive patterns that all select, or all exclude; most need no matching."""

    selects: bool
    names: frozenset[str]  # names of files and folders
    folders: frozenset[str]
    endings: tuple[str, ...]  # endings of such names
    patterns: list[match.Pattern]  # all others
    known: dict[str, bool]  # folder → whether these match it


class Kind(Record):
    """A file's kind, by its path."""

    kind: str  # code, tests, documentation
    critical: bool = False
    left_out: str = ""  # why it does not count


class Weighed(Record):
    """A changed file's weight, and why."""

    path: str
    kind: str  # code, tests, documentation; empty: it does not count
    added: int
    removed: int
    lines: float  # weighted
    files: float  # weighted
    why: str  # as text: the kind and the weight, or why it does not count
    critical: bool = False

    @property
    def counts(self) -> bool:
        """Return whether it counts at all."""
        return bool(self.kind)


class Significance(Record):
    """A change's significance."""

    files: tuple[Weighed, ...]  # the heaviest first
    lines: float  # weighted
    file_count: float  # weighted
    min_lines: float
    min_files: float

    @property
    def significant(self) -> bool:
        """Return whether it reaches a threshold."""
        reached = self.lines >= self.min_lines or self.file_count >= self.min_files
        return any(file.critical for file in self.files) or (self.counts and reached)

    @property
    def counts(self) -> bool:
        """Return whether it counts at all."""
        return any(file.counts for file in self.files)

    @property
    def why(self) -> str:
        """Return the calculation, as text."""
        if not self.counts:
            return "nothing relevant has changed"
        lines = _counted(self.lines, "line", self.min_lines)
        files = _counted(self.file_count, "file", self.min_files)
        critical = [f"`{file.path}`" for file in self.files if file.critical]
        if not critical:
            return f"{lines}, {files}"
        verb = "is" if len(critical) == 1 else "are"
        return f"{first_few(critical, _MOST_NAMED)} {verb} critical; {lines}, {files}"


def weigh(changes: tuple[FileDifference, ...], weighting: Weighting) -> Significance:
    """Return a change's significance."""
    weights = dict(zip(_WEIGHED, weighting.weights, strict=True))
    kinds = kinds_of({path for change in changes for path in (change.path, change.was)}, weighting)
    files = []
    for change in changes:
        # Moving a file must not lower its weight: the heavier of its two kinds counts.
        both = [kinds[path] for path in (change.path, change.was) if path]
        heavier = max(both, key=lambda kind: (not kind.left_out, weights[kind.kind]))
        kind = heavier._replace(critical=any(kind.critical for kind in both))
        files.append(_weighed(change, kind, weights[kind.kind]))
    files.sort(key=lambda file: (not file.critical, not file.counts, -file.lines, file.path))
    return Significance(
        files=tuple(files),
        lines=round(sum(file.lines for file in files), 6),
        file_count=round(sum(file.files for file in files), 6),
        min_lines=weighting.min_lines,
        min_files=weighting.min_files,
    )


def _weighed(change: FileDifference, kind: Kind, weight: float) -> Weighed:
    left_out = "" if kind.critical else _left_out(change, kind, weight)
    words = [f"{'critical ' if kind.critical else ''}{kind.kind}, weight {weight:.10g}"]
    words += [f"renamed from `{change.was}`"] if change.was else []
    return Weighed(
        path=change.path,
        kind="" if left_out else kind.kind,
        added=change.added,
        removed=change.removed,
        lines=0.0 if left_out else round(max(change.added, change.removed) * weight, 6),
        files=0.0 if left_out else weight,
        why=f"left out: {left_out}" if left_out else ", ".join(words),
        critical=kind.critical,
    )


def _left_out(change: FileDifference, kind: Kind, weight: float) -> str:
    """Return why a file does not count; empty if it does."""
    if kind.left_out:
        return kind.left_out
    if change.attribute:
        return f".gitattributes says {change.attribute}"
    if change.same_content:
        return "renamed only" if change.was else "only its mode changed"
    has_no_lines = change.binary or change.submodule or change.status == "T"
    if not (change.added or change.removed or has_no_lines):
        return "only white space"
    return "" if weight else f"{kind.kind}, weight 0"


def _counted(amount: float, noun: str, threshold: float) -> str:
    plural = "" if amount == 1 else "s"
    return f"{amount:.10g} weighted {noun}{plural} (threshold {threshold:.10g})"


def kinds_of(paths: Iterable[str], weighting: Weighting) -> dict[str, Kind]:
    """Return path → kind. Configured patterns precede the built-in ones."""
    configured = {
        "ignored": _parse(weighting.ignore),
        "generated": _parse(weighting.generated),
        "tests": _parse(weighting.tests),
        "documentation": _parse(weighting.documentation),
    }
    critical = _parse(weighting.critical)
    kinds = {}
    for path in paths:
        kind = _kind_of(path, (configured, _built_in()))
        if _selects(critical, path):
            kinds[path] = Kind(kind if kind in _WEIGHED else "code", critical=True)
        elif kind in _WEIGHED:
            kinds[path] = Kind(kind)
        else:
            kinds[path] = Kind("code", left_out=_LEFT_OUT[kind])
    return kinds


def _kind_of(path: str, layers: tuple[dict[str, tuple[Run, ...]], ...]) -> str:
    taken_out = set()
    for layer in layers:
        for kind, patterns in layer.items():
            selects = None if kind in taken_out else _selects(patterns, path)
            if selects:
                return kind
            if selects is False:
                taken_out.add(kind)
    return "code"


@functools.cache
def _built_in() -> dict[str, tuple[Run, ...]]:
    texts = {"generated": GENERATED, "tests": TESTS, "documentation": DOCUMENTATION}
    return {kind: _parse(tuple(text.split())) for kind, text in texts.items()}


def _parse(lines: tuple[str, ...]) -> tuple[Run, ...]:
    by_sign = itertools.groupby(reversed(lines), lambda line: line.startswith("!"))
    return tuple(
        _run([line.removeprefix("!") for line in run] if negated else list(run), not negated)
        for negated, run in by_sign
    )


def _run(lines: list[str], selects: bool) -> Run:  # noqa: FBT001 - a field
    names, folders = set[str](), set[str]()
    endings, patterns = list[str](), list[match.Pattern]()
    for line in lines:
        name = line.removesuffix("/")
        if name and _SPECIAL.isdisjoint(name):
            (names if name == line else folders).add(name)
        elif line.startswith("*") and _SPECIAL.isdisjoint(line[1:]):
            endings.append(line[1:])
        else:
            patterns.append(match.parse(line))
    return Run(selects, frozenset(names), frozenset(folders), tuple(endings), patterns, {})


def _selects(runs: tuple[Run, ...], path: str) -> bool | None:
    """Return whether the last pattern that matches a path selects it; None if none matches.

    Unlike in gitignore(5), a path below a selected folder can be excluded again, because the
    built-in lists select folders.
    """
    parts = path.split("/")
    for run in runs:
        if (
            not run.names.isdisjoint(parts)
            or not run.folders.isdisjoint(parts[:-1])
            or any(part.endswith(run.endings) for part in parts)
            or match.matches(path, run.patterns, run.known)
        ):
            return run.selects
    return None


# Lock files, vendored files, and files written by programs.
GENERATED = """
*-lock.json *-lock.yaml *-lock.yml *.lock.yml *.lock.json *.lock.hcl *.lockfile *.lockb
yarn.lock bun.lock deno.lock poetry.lock uv.lock pdm.lock Pipfile.lock pixi.lock mise.lock
devbox.lock Cargo.lock Gemfile.lock Podfile.lock Chart.lock composer.lock mix.lock pubspec.lock
flake.lock conan.lock MODULE.bazel.lock stack.yaml.lock pylock.toml go.sum go.work.sum
npm-shrinkwrap.json gems.locked Package.resolved Cartfile.resolved packages.lock.json
project.assets.json cabal.project.freeze node_modules/ bower_components/ vendor/ vendored/
_vendor/ third_party/ third-party/ site-packages/ Pods/ .terraform/ /.yarn/cache/
/.yarn/releases/ /.yarn/plugins/ /.yarn/sdks/ .pnp.cjs .pnp.loader.mjs __generated__/
__pycache__/ *.min.js *.min.mjs *.min.css *.[jt]s.map *.[mc]js.map *.css.map *_pb2.py *_pb2.pyi
*_pb2_grpc.py *.pb.go *.pb.gw.go *.pb.cc *.pb.h *.pb.swift *.pb.dart *_pb.js *_pb.ts *.g.dart
*.freezed.dart *.g.cs *.[Dd]esigner.cs *_generated.go *.generated.[a-z]* zz_generated.*
**/__snapshots__/**/*.snap **/__snapshots__/**/*.ambr **/snapshots/**/*.snap
"""

TESTS = """
test/ tests/ __tests__/ __test__/ spec/ specs/ testdata/ test-data/ test_data/ __snapshots__/
__mocks__/ __fixtures__/ e2e/ cypress/ androidTest/ unitTest/ commonTest/ conftest.py tests.py
tests.rs test_*.py test_*.rb test_*.c test_*.cc test_*.cpp test_*.sh test_*.lua test-*.sh
test-*.py *_test.* *_tests.py *_spec.* *-test.sh *-test.bash *_unittest.* *_SUITE.erl *.test.*
*.spec.* *.cy.[jt]s *.e2e.[jt]s Test[A-Z]*.java Test[A-Z]*.kt Test[A-Z]*.cs *Test.java *Test.kt
*Test.cs *Test.php *Test.scala *Test.groovy *Test.swift *Tests.* *Spec.[a-z]* *TestCase.*
*IT.java *IT.kt *.snap *.bats *.feature *.golden
"""

# Prose, pictures, tables, translations, but not programs beside them.
DOCUMENTATION = """
docs/ doc/ documentation/ *.md *.mdx *.markdown *.rst *.adoc *.asciidoc *.textile *.org *.pdf
*.drawio *.puml *.mmd *.docx *.odt *.pptx *.xlsx *.svg *.png *.PNG *.jpg *.JPG *.jpeg *.gif
*.ico *.webp *.avif *.icns *.psd *.fig *.mp3 *.mp4 *.webm *.mov *.wav *.ogg *.woff *.woff2 *.ttf
*.otf *.csv *.tsv *.jsonl *.ndjson *.geojson *.parquet *.log *.po *.pot *.xliff LICENSE*
LICENCE* COPYING* NOTICE* README* readme.* CHANGELOG* CHANGES* HISTORY* NEWS* AUTHORS*
CONTRIBUTORS* MAINTAINERS* TODO* ROADMAP* CONTRIBUTING* CODE_OF_CONDUCT* SECURITY* SUPPORT*
GOVERNANCE* CITATION* !*.py !*.[jt]s !*.[mc][jt]s !*.[jt]sx !*.vue !*.svelte !*.go !*.rs !*.java
!*.kt !*.kts !*.scala !*.groovy !*.gradle !*.[cmhr] !*.cc !*.cpp !*.hpp !*.mm !*.swift !*.cs
!*.fs !*.vb !*.rb !*.php !*.pl !*.lua !*.sh !*.bash !*.zsh !*.fish !*.ps1 !*.bat !*.cmd !*.sql
!*.tf !*.ex !*.exs !*.erl !*.hs !*.ml !*.clj !*.dart !*.jl !*.zig !*.nix !*.el !*.mk !*.toml
!*.yml !*.yaml !*.ipynb !*.proto !Makefile !Dockerfile !Gemfile !Rakefile !package.json
"""
