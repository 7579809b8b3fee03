"""What a branch would land, and whether a session has had exactly that reviewed."""

from __future__ import annotations

from gitgates.core.record import lazy
from gitgates.features.review.config import settings_of, weighting_of
from gitgates.features.review.facts import COMPLETE, DECISION, SKIP, fold
from gitgates.features.review.significance import weigh
from gitgates.features.review.weakened import find_weakened, in_one_line
from gitgates.git.diff import file_differences, patch_id
from gitgates.store.log import Journal, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.features.review.facts import Marker
    from gitgates.git.diff import Trees


class LandedChange:
    """The change that a merge brings, and the tree of the branch. Raises: GitError."""

    def __init__(self, trees: Trees, config: Config, tip: str) -> None:
        self._trees, self._review, self._tip = trees, settings_of(config), tip
        weighting = weighting_of(config)
        files = file_differences(trees)
        self._weight = weigh(files, weighting)
        blocks = self._review.weakened == "block"
        self._weakened = find_weakened(trees, files, weighting) if blocks else ()

    @property
    def missing(self) -> str:
        """Why it may not land; empty: it may."""
        if self._review.mode == "require" and self._weight.counts:
            is_reviewed = self._is_complete
            why = f"the reviewer has not posted {COMPLETE} of this change"
        else:
            is_reviewed = not self._weakened or bool(self._markers)
            why = f"it weakens the checks, and was not reviewed: {in_one_line(self._weakened)}"
        return "" if is_reviewed else why

    @property
    def _is_complete(self) -> bool:
        if any(marker.how == SKIP and marker.by_person for marker in self._markers):
            return True
        decisions = [marker for marker in self._markers if marker.how == DECISION]
        newest = max(decisions, key=lambda marker: marker.point.stamp, default=None)
        return newest is not None and newest.name == COMPLETE

    @lazy
    def _markers(self) -> tuple[Marker, ...]:
        """Return the reviews of this content or this patch, by any session of any worktree."""
        # White space is in no patch id, and in a critical file it may have a meaning.
        is_critical = any(file.critical for file in self._weight.files)
        patch = "" if is_critical else patch_id(self._trees)
        return tuple(
            marker
            for state_abs in self._trees.repo.states_abs
            for path_abs in sessions(state_abs)
            for marker in fold(Journal(path_abs).read()).markers
            if (patch and marker.patch == patch) or marker.point.tree == self._tip
        )
