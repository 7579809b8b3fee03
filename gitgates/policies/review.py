"""Whether a change is significant enough to be reviewed: what git says of it in, verdict out. Pure.

`weigh` counts lines and files by kind and leaves out what nobody reads; docs/explanation/review.md
argues for the numbers. A file's lines are the larger of what was added and removed: twenty lines
that were rewritten are twenty, not forty.
"""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.types import Changed, Review

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
        """Tell whether there is anything to review in it."""
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
        """Tell whether it asks for a review."""
        reached = self.lines >= self.min_lines or self.file_count >= self.min_files
        return any(one.critical for one in self.files) or (self.counts and reached)

    @property
    def counts(self) -> bool:
        """Tell whether there is anything to review in it."""
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
    """Tell whether it is a change, though no lines of it are counted."""
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
