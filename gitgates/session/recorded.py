"""Record how the gates of a commit or a push have ended, for `gitgates verify` and other machines.

Nothing is refused if that cannot be written: the gates will be missing there, or run again.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.policy import is_provided
from gitgates.core.types import AS_IS, BLOCK, CHECKED_OUT, HIDDEN
from gitgates.engine.plan import RUN_BY_FRAMEWORK, takes_paths
from gitgates.git.index import committed_tree, full_status
from gitgates.store.proofs import append, proof_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision, Gate, GateResult, Visit
    from gitgates.session.git_hooks import HookCall, JudgedContent

SIGNED = "signed_passes"  # provided if what gates have passed is signed for other machines


def record(
    call: HookCall, visits: tuple[Visit, ...], tree: str, base: str, *, saw_more: bool = False
) -> None:
    """Record how gates have ended on a tree, which a decision lets be committed.

    `base` is the commit that paths were compared with. `saw_more`: not that tree alone.
    `unmatched` by any path differs from `skipped` by a person. How hooks end that pre-commit
    runs itself is not known yet: they are `skipped`, too.

    Raises: OSError if it cannot be written.
    """
    now, gates = time.time(), _gates(call)
    results = {visit.result.gate: visit.result for visit in visits}
    ends = dict(results)
    for visit in reversed(visits):  # a gate has looked if the one that it leads to has
        if visit.called_by and ends[visit.result.gate].status == "unchecked":
            ends[visit.called_by] = ends[visit.result.gate]
    more: dict[str, dict[str, str]] = {}
    if is_provided(call.config, SIGNED):
        from gitgates.engine.signed_keys import maker_of  # only if proofs are signed

        maker = maker_of(call.event, call.env)
        # What a gate has changed is in the commit, and others may have run before.
        saw_more |= any(result.changed_paths for result in results.values())
        for name, result in results.items():
            more[name] = {
                "shared": result.shared,
                # Who signs has not run what a server ran.
                "exact": "" if saw_more or result.action_digest else "1",
                "maker": maker if result.maker is None else result.maker,
            }
    proofs = [
        proof_of(
            gates[name],
            result,
            **more.get(name, {}),
            status=ends[name].status if name in call.skips else _end(ends[name]),
            time_s=now,
            content=tree,
            hook=call.event.name,
            root_abs=call.repo.root_abs,
            base=base,
            config=call.config.digest,
        )
        for name, result in results.items()
    ]
    append(call.repo.shared_state_abs, proofs)


def record_commit(call: HookCall) -> None:
    """Record which gates let this commit pass."""
    decision, repo = call.decision, call.repo
    if not decision or decision.verdict >= BLOCK or call.errors:
        return
    try:
        tree = committed_tree(repo)
        record(call, decision.visits, tree, repo.head, saw_more=_saw_more(call))
    except (GitError, OSError) as error:
        from gitgates.store.owners import denied  # only if something is wrong

        not_ours = denied(error)
        if call.config.verifies or not_ours:
            why = not_ours or error
            call.say(f"the results were not recorded for `gitgates verify`: {why}")


def record_push(call: HookCall, content: JudgedContent, decision: Decision) -> None:
    """Record the gates that have run on the tree of a pushed commit, if they are signed."""
    if not is_provided(call.config, SIGNED):
        return
    from gitgates.git.paths import pushed  # only if proofs are signed

    git, gates = call.repo.git, _gates(call)
    remote = call.event.argv[0] if call.event.argv else ""
    try:
        tree = git.resolve(f"{content.commit}^{{tree}}")
        revisions = pushed(content.event.refs, remote, git)
        listing = git.ask("rev-list", "--boundary", *revisions).stdout if revisions else b""
        edges = [line[1:] for line in listing.decode().split() if line.startswith("-")]
        # With one commit below all that is pushed, or none, the paths are what differs from that.
        visits = tuple(
            visit
            for visit in decision.visits
            if not edges[1:] or not takes_paths(gates[visit.result.gate])
        )
        if tree and visits:
            # Untracked files are seen if the rest is hidden.
            base = edges[0] if edges else ""
            record(call, visits, tree, base, saw_more=content.place == HIDDEN)
    except (GitgatesError, OSError) as error:
        call.say(f"the results were not recorded for others: {error}")


def _gates(call: HookCall) -> dict[str, Gate]:
    return {step.gate.name: step.gate for step in call.plan.steps} if call.plan else {}


def _saw_more(call: HookCall) -> bool:
    """Return whether gates saw files that are not in the commit, if others will believe them."""
    place = call.contents[0].place
    if place == CHECKED_OUT or not is_provided(call.config, SIGNED):
        return False
    from gitgates.git.paths import unwatched  # only if proofs are signed

    lines, is_whole = full_status(call.repo.git, "--porcelain=v2", "--untracked-files=normal")
    return bool(not is_whole or unwatched(call.repo.git)) or any(
        line[:1] == b"?" or (line[3:4] not in b"." and (place == AS_IS or line[5:6] == b"S"))
        for line in lines
    )


def _end(result: GateResult) -> str:
    if result.excused:
        return "accepted"  # a baseline has its failures
    is_unmatched = result.status == "skipped" and result.reason != RUN_BY_FRAMEWORK
    return "unmatched" if is_unmatched else result.status
