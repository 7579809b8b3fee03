"""What a file is, told by its path: code, tests, documentation, or nothing that anybody reads."""

from __future__ import annotations

from gitgates.engine import match
from gitgates.policies.review import Kind
from gitgates.review import patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Review


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
        """Return whether it is selected; None where no pattern speaks of it."""
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
    """Return why nobody writes a file by hand; empty where somebody does."""
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
