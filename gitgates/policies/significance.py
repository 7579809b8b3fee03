"""Whether a change is significant enough to be reviewed: its files, weighed by kind. Pure.

`weigh` counts lines and files by kind and leaves out what nobody reads; docs/explanation/review.md
argues for the numbers. A file's lines are the larger of what was added and removed: twenty lines
that were rewritten are twenty, not forty. What a file is (code, tests, documentation, or nothing
that anybody reads) is told by its path.
"""

from __future__ import annotations

from gitgates.engine import match
from gitgates.policies import patterns
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.agent_types import Changed
    from gitgates.types import Review


_KINDS = ("code", "tests", "documentation")
# Far below what anybody sets, and above what adding up tenths is off by.
_ROUNDING = 1e-6
_MOST_NAMED = 3  # critical files, in a sentence
_NOT_BELIEVED = "!"


class Kind(Record):
    """What a path is taken for, by its name and the configured patterns."""

    kind: str  # code, tests, documentation
    critical: bool = False
    left_out: str = ""  # why it does not count: a pattern of `ignore`, or of what is generated


class Weighed(Record):
    """What one changed file adds, and why."""

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
        """Return whether there is anything to review in it."""
        return bool(self.kind) or self.critical


class Significance(Record):
    """What a change comes to."""

    files: tuple[Weighed, ...]  # those that weigh most first
    lines: float  # weighted
    file_count: float  # weighted
    min_lines: float
    min_files: float
    why: str  # the arithmetic, in words

    @property
    def significant(self) -> bool:
        """Return whether it asks for a review."""
        reached = self.lines >= self.min_lines or self.file_count >= self.min_files
        return any(one.critical for one in self.files) or (self.counts and reached)

    @property
    def counts(self) -> bool:
        """Return whether there is anything to review in it."""
        return any(one.counts for one in self.files)


def weigh(changes: tuple[Changed, ...], kinds: Mapping[str, Kind], review: Review) -> Significance:
    """Return what a change comes to. `kinds` has each path of it, and where known, renamed ones'.

    A file that was renamed is the weightier of what its two names are taken for, so that moving
    it hides nothing.
    """
    weights = dict(zip(_KINDS, review.weights, strict=True))
    weighed = [_weigh_one(one, _kind_of(one, kinds, weights), weights) for one in changes]
    weighed.sort(key=lambda one: (not one.critical, not one.counts, -one.lines, -one.files, one))
    found = Significance(
        files=tuple(weighed),
        lines=round(sum(one.lines for one in weighed), 6),
        file_count=round(sum(one.files for one in weighed), 6),
        min_lines=review.min_lines,
        min_files=review.min_files,
        why="",
    )
    return found._replace(why=_arithmetic(found))


def _kind_of(change: Changed, kinds: Mapping[str, Kind], weights: Mapping[str, float]) -> Kind:
    known = kinds[change.path]
    was = kinds.get(change.was) if change.was else None
    if was is None:
        return known
    critical = known.critical or was.critical
    heavier = max((known, was), key=lambda one: (not one.left_out, weights[one.kind]))
    return heavier._replace(critical=critical)


def _weigh_one(change: Changed, known: Kind, weights: Mapping[str, float]) -> Weighed:
    weight = weights[known.kind]
    left_out = "" if known.critical else _left_out(change, known, weight)
    if left_out:
        kind, weight, why = "", 0.0, f"left out: {left_out}"
    else:
        kind, why = known.kind, _reason(change, known, weight)
    return Weighed(
        path=change.path,
        kind=kind,
        added=change.added,
        removed=change.removed,
        lines=round(_lines(change) * weight, 6),
        files=weight if _lines(change) or change.edited is None else 0.0,
        why=why,
        critical=known.critical,
    )


def _lines(change: Changed) -> int:
    return max(change.added, change.removed) if change.edited is None else change.edited


def _reason(change: Changed, known: Kind, weight: float) -> str:
    name = f"{known.kind}, weight {show(weight)}"
    words = [f"critical ({name})" if known.critical else name]
    if change.binary:
        words.append("binary")
    if change.submodule:
        words.append("submodule")
    if change.edited == 0:
        words.append("only line ends differ")
    if change.was:
        words.append(f"renamed from `{change.was}`")
    if change.attribute.startswith(_NOT_BELIEVED):
        said = change.attribute.removeprefix(_NOT_BELIEVED)
        words.append(f"{said} is no excuse: the session may have set it itself")
    return ", ".join(words)


def _left_out(change: Changed, known: Kind, weight: float) -> str:
    if known.left_out:
        return known.left_out
    if change.attribute and not change.attribute.startswith(_NOT_BELIEVED):
        return f".gitattributes says {change.attribute}"
    if change.same_content:
        return "renamed only" if change.was else "only its mode is another"
    if change.edited == 0 and change.path.endswith(".ipynb"):
        return "no source of a cell differs"
    if not (change.added or change.removed or _has_no_lines(change)):
        return _of_nothing(change)
    return "" if weight else f"{known.kind}, weight 0"


def _has_no_lines(change: Changed) -> bool:
    """Return whether it is a change, though no lines of it are counted."""
    return change.binary or change.submodule or change.status == "T"


def _of_nothing(change: Changed) -> str:
    if change.was:
        return "renamed, and only white space"
    return "only white space" if change.status == "M" else "nothing in it but white space"


def _arithmetic(found: Significance) -> str:
    if not found.counts:
        return "nothing that counts has changed"
    lines = _counted(found.lines, "line", found.min_lines)
    files = _counted(found.file_count, "file", found.min_files)
    critical = [f"`{one.path}`" for one in found.files if one.critical]
    if not critical:
        return f"{lines}, {files}"
    named = ", ".join(critical[:_MOST_NAMED])
    more = len(critical) - _MOST_NAMED
    named += f" and {more} more" if more > 0 else ""
    return f"{named} {'is' if len(critical) == 1 else 'are'} critical; {lines}, {files}"


def _counted(amount: float, noun: str, threshold: float) -> str:
    shown = show(amount)
    plural = "" if shown == "1" else "s"
    return f"{shown} weighted {noun}{plural} (threshold {show(threshold)})"


def show(amount: float) -> str:
    """Return a number for people. It is never rounded up: what is shown as 40 has reached 40."""
    places = 10 if amount >= 1 else 1000
    whole = int(amount * places + _ROUNDING)
    return f"{whole / places:.3f}".rstrip("0").rstrip(".")


def kinds_of(paths: tuple[str, ...], review: Review) -> dict[str, Kind]:
    """Return path → what it is taken for.

    In this order: `critical`, `ignore`, what is generated, tests, documentation, code. The person's
    patterns speak before the built-in ones.
    """
    tell = _Teller(review)
    return {path: tell.kind(path) for path in paths}


class _Layer:
    """A list of patterns; the last one that speaks of a path, or a folder above it, decides.

    Unlike in gitignore(5), what lies below a folder can be taken out again: the built-in lists
    select folders, and there would be no other way.
    """

    def __init__(self, lines: tuple[str, ...]) -> None:
        # Those that follow one another and say the same are asked at once, the last ones first.
        self._runs: list[tuple[bool, list[match.Pattern], dict[str, bool]]] = []
        for pattern in map(match.parse, lines):
            selects = not pattern.negated
            if not self._runs or self._runs[0][0] != selects:
                self._runs.insert(0, (selects, [], {}))
            self._runs[0][1].append(pattern._replace(negated=False))

    def says(self, path: str) -> bool | None:
        """Return whether it is selected; None if no pattern speaks of it."""
        for selects, those, folders in self._runs:
            if match.matches(path, those, folders):
                return selects
        return None


class _Teller:
    """Tells paths apart by the lists of one configuration."""

    def __init__(self, review: Review) -> None:
        self._critical = _Layer(review.critical)
        self._ignore = _Layer(review.ignore)
        self._generated = _Layer(review.generated)
        self._tests = _Layer(review.tests)
        self._documentation = _Layer(review.documentation)
        self._folders: dict[str, frozenset[str]] = {}
        self._known: dict[tuple[str, bool, str], Kind] = {}

    def kind(self, path: str) -> Kind:
        """Return what a path is taken for."""
        folder, _slash, name = path.rpartition("/")
        folders = self._folders.get(folder)
        if folders is None:
            folders = self._folders[folder] = frozenset(folder.split("/"))
        kind = self._readable(path, name, folders)
        critical = bool(self._critical.says(path))
        told = (kind, critical, "" if critical else self._left_out(path, name, folders))
        if told not in self._known:  # to make a record takes longer than to tell
            self._known[told] = Kind(*told)
        return self._known[told]

    def _left_out(self, path: str, name: str, folders: frozenset[str]) -> str:
        if self._ignore.says(path):
            return "a pattern of `ignore`"
        generated = self._generated.says(path)
        if generated is None:
            return _generated(path, name, folders)
        return "a pattern of `generated`" if generated else ""

    def _readable(self, path: str, name: str, folders: frozenset[str]) -> str:
        tests = self._tests.says(path)
        if tests:
            return "tests"
        documentation = self._documentation.says(path)
        if documentation:
            return "documentation"
        if tests is None and _is_test(name, folders):
            return "tests"
        if documentation is None and _is_documentation(name, folders):
            return "documentation"
        return "code"


def _generated(path: str, name: str, folders: frozenset[str]) -> str:
    """Return why nobody writes a file by hand; empty if somebody does."""
    if name in patterns.LOCK_NAMES:
        return "lock file"
    if not patterns.VENDORED_FOLDERS.isdisjoint(folders):
        return "vendored"
    if path.startswith(patterns.VENDORED_STARTS):
        return "vendored"
    by_name = name in patterns.GENERATED_NAMES or name.startswith(patterns.GENERATED_PREFIXES)
    if by_name or name.endswith(patterns.GENERATED_ENDINGS):
        return "generated"
    return "" if patterns.GENERATED_FOLDERS.isdisjoint(folders) else "generated"


def _is_test(name: str, folders: frozenset[str]) -> bool:
    if not patterns.TEST_FOLDERS.isdisjoint(folders):
        return True
    if name in patterns.TEST_NAMES or name.endswith(patterns.TEST_ENDINGS):
        return True
    return name.startswith(patterns.TEST_STARTS) and name.endswith(
        patterns.TEST_ENDINGS_AFTER_START
    )


def _is_documentation(name: str, folders: frozenset[str]) -> bool:
    lower = name.lower()
    if lower.endswith(patterns.DOCUMENTATION_ENDINGS):
        return True
    stem, dot, ending = name.partition(".")
    if stem.upper() in patterns.DOCUMENTATION_STEMS:
        return dot + ending.lower() in patterns.DOCUMENTATION_STEM_ENDINGS
    if patterns.DOCUMENTATION_FOLDERS.isdisjoint(folders):
        return False
    return not (name in patterns.CODE_NAMES or lower.endswith(patterns.CODE_ENDINGS))
