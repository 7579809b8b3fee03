"""What was there when a session began, in one of the worktrees that it has come to."""

from __future__ import annotations

from gitgates.record import Record
from gitgates.types import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.git.run import Git
    from gitgates.policies.evidence import Fact
    from gitgates.policies.reviews import Evidence

_UNKNOWN = "this session's beginning was not heard of here"
_NOW = "HEAD, so that all that differs from HEAD counts as its work"


class Beginning(Record):
    """What a session's change is measured from."""

    point: Point
    note: str = ""  # what stands in for a beginning that was not heard of; empty: it was
    also: tuple[str, ...] = ()  # git folders of other worktrees that the session has come to


def beginning(git: Git, evidence: Evidence, elsewhere: Mapping[str, Sequence[Fact]]) -> Beginning:
    """Return where the session began here. `elsewhere`: git folder → its facts in that worktree.

    Where that was not heard of: what was checked out when it began elsewhere, else what is now. The
    log of HEAD counts in seconds: what is of the same one belongs to the session.

    Raises: GitError where git cannot be asked.
    """
    also = tuple(folder for folder, facts in elsewhere.items() if facts)
    if evidence.base:
        return Beginning(evidence.base, evidence.base_note, also)
    began = min((_stamp(facts[0]) for facts in elsewhere.values() if facts), default=0.0)
    names = [(f"HEAD@{{{int(began) - 1} +0000}}", "what was checked out when it began")]
    for name, said in [*(names if began else []), ("HEAD", _NOW)]:
        asked = git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if not asked.exit_status:
            head = asked.stdout.decode().split()[-1]
            tree = git.lines("rev-parse", "--verify", f"{head}^{{tree}}")[0]
            point = Point(tree=tree, head=head, stamp=began)
            return Beginning(point, f"{_UNKNOWN}: compared with {said}", also)
    empty = git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    point = Point(tree=empty, stamp=began)
    return Beginning(point, f"{_UNKNOWN}: everything is taken for its work", also)


def _stamp(fact: Fact) -> float:
    stamp = fact.get("t", 0.0)
    return float(stamp) if isinstance(stamp, int | float) else 0.0
