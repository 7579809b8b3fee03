"""Look at what a session has changed, and at who has to have reviewed it: for verbs, cold."""

from __future__ import annotations

from gitgates.git.snapshot import Snapshot, take
from gitgates.policies.evidence import fold
from gitgates.policies.needs import hears_all
from gitgates.policies.reviews import is_strict
from gitgates.record import Record
from gitgates.review.assess import Scene
from gitgates.review.authorship import own_since, with_open_span
from gitgates.review.beginning import beginning
from gitgates.store.log import git_dir_of
from gitgates.types import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.review.caller import Caller
    from gitgates.types import Config


class Survey(Record):
    """What there is to review, and in which form."""

    scene: Scene
    snapshot: Snapshot
    strict: bool
    base_is_known: bool
    notes: tuple[str, ...] = ()


def survey(place: tuple[Repo, Git], config: Config, caller: Caller) -> Survey:
    """Return what a session's change is measured between, with a snapshot of what is there now.

    Raises: GitError where no snapshot can be taken; StateError where it cannot be stored.
    """
    repo, git = place
    snapshot = take(repo)
    others = zip(caller.journals[1:], caller.facts[1:], strict=True)
    began = beginning(git, caller.evidence, {git_dir_of(j.path_abs): f for j, f in others})
    now = Point(tree=snapshot.tree, head=snapshot.head)
    transcript_abs = caller.whole.transcript_abs
    own = own_since(caller.facts, transcript_abs, repo.root_abs, hears_all=hears_all(config))
    scene = Scene(
        repo=repo,
        git=git,
        review=config.review,
        base=began.point,
        now=now,
        also=began.also,
        quiet=with_open_span(caller.evidence, own, now).quiet,
    )
    return Survey(
        scene=scene,
        snapshot=snapshot,
        strict=is_strict(config.review, map(fold, caller.facts)),
        base_is_known=not began.note,
        notes=tuple(text for text in (began.note, *snapshot.why_unprovable) if text),
    )
