"""Push proofs with a push, and provide trusted signers' proofs."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.policy import Need
from gitgates.core.types import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.core.types import Config, Verdict
    from gitgates.drivers.git import HookCall
    from gitgates.features.proof.evidence import SignedEvidence
    from gitgates.features.proof.passes import SignedPasses
    from gitgates.git.repo import Repo

_LIMIT_S = 20.0  # for pushing proofs, while the person's own push waits
_MOST = "--max-count=200"  # commits of a push whose proofs are signed: the newest


def needs(config: Config) -> tuple[Need, ...]:
    """Return the event before a push, if proofs are pushed with it."""
    is_on = config.tables.get("proof", {}).get("push", False)
    return (Need(kind="before-push"),) if is_on else ()


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Sign and push proofs of the pushed commits; if that fails, the push goes on without them."""
    is_refused = so_far.level >= BLOCK or call.is_refused or call.errors
    if is_refused or call.is_dry or not call.event.argv:
        return so_far
    # Cold: `needs` alone loads none of it.
    from gitgates.features.proof.signing import statements_of
    from gitgates.features.proof.transfer import Transfer, sign_new
    from gitgates.git.commits import list_commits
    from gitgates.git.paths import pushed

    repo, remote = call.repo, call.event.argv[0]
    try:
        if revisions := pushed(call.event.refs, remote, repo.git):
            sign_new(repo, statements_of(repo, list_commits(repo.git, _MOST, *revisions)))
            Transfer(repo, remote, limit_s=_LIMIT_S, unattended=True).push()
    except (GitgatesError, OSError) as error:
        why = ". ".join(line.strip(" .") for line in str(error).splitlines())
        call.say(f"the proofs were not pushed: {why}")
    return so_far


def publish_landed(
    repo: Repo, config: Config, commits: list[str], *, remote: str, say: Callable[[str], None]
) -> None:
    """Sign landed commits' proofs, if `push` is set, and push them to the remote, if any."""
    if not config.tables["proof"].get("push", False):
        return
    from gitgates.features.proof.signing import statements_of
    from gitgates.features.proof.transfer import Transfer, sign_new
    from gitgates.git.commits import list_commits

    try:
        sign_new(repo, statements_of(repo, list_commits(repo.git, "--no-walk", *commits)))
        if remote:
            Transfer(repo, remote, limit_s=_LIMIT_S, unattended=True).push()
    except (GitgatesError, OSError) as error:
        say(f"the proofs were not published: {error}")


def signed_evidence(repo: Repo, config: Config, say: Callable[[str], None]) -> SignedEvidence:
    """Provide what trusted signers have signed about trees."""
    from gitgates.features.proof.evidence import SignedEvidence  # only if it is asked for

    del config  # the merged configuration decides whom to trust
    return SignedEvidence(repo, say)


def signed_passes(repo: Repo, config: Config, say: Callable[[str], None]) -> SignedPasses:
    """Provide the passes that others have signed, for one run of gates."""
    from gitgates.features.proof.passes import SignedPasses  # as above

    return SignedPasses(repo, config, say)
