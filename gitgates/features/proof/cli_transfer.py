"""`gitgates proof push` and `gitgates proof fetch`: move proofs by git."""

from __future__ import annotations

import click

from gitgates.core.clean import counted
from gitgates.core.errors import OK, ConfigError
from gitgates.features.proof.signing import statements_of
from gitgates.features.proof.transfer import Transfer, default_remote, sign_new
from gitgates.git.commits import list_commits
from gitgates.git.notes import REF
from gitgates.verbs.repository import current_repo

_MOST = "--max-count=100"


@click.command("fetch")
@click.argument("remote", required=False)
def fetch(remote: str | None) -> int:
    """Fetch the proofs of REMOTE, and add them to those here.

    REMOTE is a name or an address. Default: the remote of the upstream of the branch, else origin,
    else the only one. Only refs/notes/gitgates is changed, and a copy of what the remote has there.
    A remote without proofs is not an error.

    Exit status 0: done, or there are none. 74: git cannot fetch them.
    """
    repo = current_repo()
    name = remote or default_remote(repo.git)
    count = Transfer(repo, name).fetch()
    click.echo(f"{name}: {counted(count, 'new proof')}" if count else f"{name}: no new proofs")
    return OK


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
