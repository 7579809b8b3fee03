"""What was there when a session began, in one of the worktrees that it has come to."""

from __future__ import annotations

from gitgates.agent_types import Point
from gitgates.policies.evidence import EVIDENCE, stamp_of
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.git.repo import Git
    from gitgates.policies.call import Call
    from gitgates.policies.evidence import Evidence
    from gitgates.policies.session import Fact

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
    began = min((stamp_of(facts[0]) for facts in elsewhere.values() if facts), default=0.0)
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


def first_point(call: Call) -> Beginning:
    """Return what was there when the session began, for its reviews.

    Raises: GitError where git cannot be asked.
    """
    return beginning(call.repo.git, call.state(EVIDENCE), call.elsewhere)


def record_base(call: Call) -> None:
    """Record what stands in for the first snapshot, where the beginning was not heard of.

    Otherwise the next event would take one, and what is there by then would be nobody's work.

    Raises: GitError where git cannot be asked; OSError where the journal cannot be written.
    """
    if call.session.base:
        return
    now, began = call.snapshot, first_point(call)
    # In a worktree that the session came to later, it began when it did elsewhere.
    elsewhere_s = {"t": began.point.stamp} if began.point.stamp else {}
    why = call.session.no_base or ("" if elsewhere_s else began.note)
    entry: Fact = {"tree": began.point.tree, "head": began.point.head, "why": why}
    entry |= {"note": began.note, "not_seen": list(now.not_seen)}
    call.record({"what": "snapshot", **entry, **elsewhere_s})
