"""The words of what weakens the checks."""

from __future__ import annotations

from gitgates.record import Record

TEST_FILE_GONE = "test file deleted"
TEST_GONE = "test removed"
ASSERTIONS_GONE = "assertions removed"
WEAKER_ASSERTION = "weaker assertion"
CASES_GONE = "test cases removed"
NOT_REACHED = "assertions not reached"
SWALLOWED = "failure swallowed"
EMPTY_ASSERTION = "assertion that always holds"
SKIPPED = "test skipped"
ONLY = "all other tests skipped"
SUPPRESSED = "warning suppressed"
SETTING = "check's settings changed"
CI = "CI relaxed"
RECIPE = "check relaxed"
HIDDEN = "hidden from diffs"
BYPASSED = "hooks bypassed"
GATE = "gate relaxed"
AGENT_HOOKS = "agent's hooks relaxed"


class Finding(Record):
    """One thing that weakens the checks."""

    path: str
    what: str  # in a word or two: one of those above
    detail: str  # the line, the name, or what has become of a setting
    line: int = 0  # in the file as it is now; 0: it is about no line of it


class Pair(Record):
    """One file that has changed: what it held, and what it holds."""

    path: str
    before: bytes | None  # None: it was not there
    after: bytes | None  # None: it is gone
    was: str = ""  # its path before, where it was renamed
    is_test: bool = False  # taken for a test by more than its name
    read_by_nobody: bool = False  # generated, vendored: what its code says of checks does not count

    @property
    def old_path(self) -> str:
        """Its path before."""
        return self.was or self.path
