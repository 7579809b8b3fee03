"""Record how gates have ended on pushed commits, so that it can be signed. Cold."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.types import HIDDEN
from gitgates.engine.plan import takes_paths
from gitgates.git.ranges import pushed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision
    from gitgates.session.git_hooks import HookCall, JudgedContent


def record_push(call: HookCall, content: JudgedContent, decision: Decision) -> None:
    """Record the gates that have run on the tree of a pushed commit.

    A push is refused for nothing here: where it cannot be written, its gates run again elsewhere.
    """
    git, before = call.repo.git, call.decision
    remote = call.event.argv[0] if call.event.argv else ""
    try:
        tree = git.resolve(f"{content.commit}^{{tree}}")
        revisions = pushed(content.event.refs, remote, git)
        listing = git.ask("rev-list", "--boundary", *revisions).stdout if revisions else b""
        edges = [line[1:] for line in listing.decode().split() if line.startswith("-")]
        # With one commit below all that is pushed, or none, the paths are what differs from that.
        base = edges[0] if edges else ""
        gates = {step.gate.name: step.gate for step in call.plan.steps} if call.plan else {}
        visits = tuple(
            visit
            for visit in decision.visits
            if not edges[1:] or not takes_paths(gates[visit.result.gate])
        )
        call.decision = decision._replace(visits=visits)
        if tree and visits:
            # What is not tracked is seen where the rest is hidden.
            call.record(tree, base, saw_more=content.place == HIDDEN)
    except (GitgatesError, OSError) as error:
        call.say(f"the results were not recorded for others: {error}")
    finally:
        call.decision = before
