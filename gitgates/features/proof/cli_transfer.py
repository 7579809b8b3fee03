"""`gitgates proof push` and `gitgates proof fetch`: move proofs by git."""

from __future__ import annotations

import click

from gitgates.config.load import load
from gitgates.core.clean import counted, plain_line
from gitgates.core.errors import OK, ConfigError, GitError
from gitgates.engine.signed_keys import definition_sha256
from gitgates.features.proof.evidence import SignedEvidence
from gitgates.features.proof.signing import statements_of
from gitgates.features.proof.transfer import Transfer, default_remote, sign_new
from gitgates.git.commits import list_commits
from gitgates.git.notes import REF
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Gate
    from gitgates.git.repo import Repo

_MOST = "--max-count=100"
_MOST_NAMED = 5


@click.command("fetch")
@click.argument("remote", required=False)
def fetch(remote: str | None) -> int:
    """Fetch the proofs of REMOTE, and add them to those here.

    REMOTE is a name or an address. Default: the remote of the upstream of the branch, else origin,
    else the only one. Only refs/notes/gitgates is changed, and a copy of what the remote has there.
    A remote without proofs is not an error.

    New ones that do not count here are named: those that are not signed by somebody who is trusted,
    are about another tree, or about gates that are configured in another way.

    Exit status 0: done, or there are none. 74: git cannot fetch them.
    """
    repo = current_repo()
    name = remote or default_remote(repo.git)
    news = Transfer(repo, name).fetch()
    count = sum(map(len, news.values()))
    click.echo(f"{name}: {counted(count, 'new proof')}" if count else f"{name}: no new proofs")
    for text in _not_counting(repo, news) if news else ():
        click.echo(f"gitgates: not believed: {plain_line(text)}", err=True)
    return OK


def _not_counting(repo: Repo, news: dict[str, list[bytes]]) -> list[str]:
    """Return which new proofs do not count, and why: one of each reason."""
    definitions = {gate.name: definition_sha256(gate) for gate in _gates(repo)}
    evidence, by_reason = SignedEvidence(repo, lambda _text: None), dict[str, list[str]]()
    try:
        for tree, envelopes in news.items():
            for raw in envelopes:
                title, why = evidence.why_not(tree, raw, definitions)
                if why:
                    by_reason.setdefault(why, []).append(title)
    except GitError as error:
        by_reason[str(error)] = ["whose proofs count cannot be read"]
    texts = [
        f"{titles[0]}: {why}" + (f" (and {len(titles) - 1} more)" if len(titles) > 1 else "")
        for why, titles in by_reason.items()
    ]
    left_out = len(texts) - _MOST_NAMED
    return texts[:_MOST_NAMED] + ([f"{left_out} more, of other reasons"] if left_out > 0 else [])


def _gates(repo: Repo) -> tuple[Gate, ...]:
    try:
        config = load(repo.root_abs)
    except ConfigError:
        return ()
    return config.gates if config else ()


@click.command("push")
@click.argument("remote", required=False)
def push(remote: str | None) -> int:
    """Sign the proofs of this machine, and push them to REMOTE.

    It signs how the gates have ended on the last 100 commits of HEAD, unless it has done so before.
    Only refs/notes/gitgates is pushed, never forced, and without hooks; proofs that others have
    pushed are fetched and kept. REMOTE is as in `gitgates proof fetch`.

    Exit status 0: done, or there are no proofs. 74: git cannot push them. 78: there is no key to
    sign with, and there are no signed proofs.
    """
    repo = current_repo()
    name, count = remote or default_remote(repo.git), 0
    try:
        commits = list_commits(repo.git, _MOST, "HEAD") if repo.head else []
        count = len(sign_new(repo, statements_of(repo, commits)))
    except ConfigError as error:
        if not repo.git.resolve(REF):
            raise
        click.echo(f"gitgates: nothing was signed: {error}", err=True)
    Transfer(repo, name).push()
    new = f"{counted(count, 'proof')} signed and pushed"
    click.echo(f"{name}: {new if count else 'no new proofs were signed'}")
    return OK
