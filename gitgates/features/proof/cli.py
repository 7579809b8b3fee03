"""`gitgates proof`: signed proofs of what gates have passed."""

from __future__ import annotations

import os
from shlex import quote
from typing import Any

import click

from gitgates.core import errors
from gitgates.core.clean import counted, plain_line
from gitgates.core.record import Record
from gitgates.features.proof.cli_transfer import fetch, push
from gitgates.features.proof.envelope import Envelope, read_envelope
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed, statements_of
from gitgates.features.proof.ssh_keys import NAMESPACE
from gitgates.features.proof.statement import RefusedError, Statement, read_payload
from gitgates.features.proof.trust import Trust, trust_at
from gitgates.git.commits import Commit, list_commits
from gitgates.git.ranges import range_of, unpushed
from gitgates.git.repo import Repo
from gitgates.store.files import read_regular
from gitgates.store.log import utc
from gitgates.store.proofs import age
from gitgates.verbs.output import format_option, print_json, table, write_report
from gitgates.verbs.repository import current_repo

_VERSION = 1
_SHORT = 7
_RANGE_HELP = (
    "RANGE is as in `git log`, such as origin/main..HEAD. Default: the commits that are not in the "
    "upstream of the branch, or in no remote."
)


class FoundProof(Record):
    """A proof that was found, and whether it is believed here."""

    raw: bytes
    envelope: Envelope | None = None  # None: it is no envelope
    statement: Statement | None = None  # None: of none of this version
    reason: str = ""  # why it is not believed

    @property
    def state(self) -> str:
        """Whether it is believed, for display."""
        return f"not believed: {plain_line(self.reason, 400)}" if self.reason else "believed"


@click.group("proof")
def command() -> None:
    """Sign, show, verify and carry proofs of what gates have passed.

    A proof says how gates have ended on the tree of a commit, and is signed with your ssh key, as
    git signs commits. They are in git notes, refs/notes/gitgates. Whose proofs count is set in
    [tool.gitgates.proof].
    """


command.add_command(push)
command.add_command(fetch)


@command.command(
    "list", help=f"List the proofs of commits, and whether they count.\n\n{_RANGE_HELP}"
)
@click.argument("revisions", metavar="[RANGE]", required=False)
@format_option
def list_proofs(revisions: str | None, fmt: str) -> int:
    """List proofs."""
    repo = current_repo()
    trust, notes, commits = trust_at(repo), ProofNotes(repo), _commits(repo, revisions)
    found = {commit.id: _of_tree(notes, trust, commit.tree) for commit in commits}
    if fmt == "json":
        documents = [
            {"commit": commit.id, "tree": commit.tree, "proofs": [*map(_fields, found[commit.id])]}
            for commit in commits
        ]
        print_json({"version": _VERSION, "commits": documents})
        return errors.OK
    rows: list[tuple[str, ...]] = []
    for commit in commits:
        rows += [
            (commit.id[:_SHORT], *_columns(proof), proof.state) for proof in found[commit.id]
        ] or [(commit.id[:_SHORT], "no proof", "", "")]
    click.echo(table(rows) if rows else "no commits\n", nl=False)
    return errors.OK


@command.command("show")
@click.argument("target", metavar="COMMIT|FILE")
@format_option
def show(target: str, fmt: str) -> int:
    """Show what the proofs of a commit, or in a file, say.

    Exit status 1: there are none.
    """
    found = _find(current_repo(), target)
    if fmt == "json":
        print_json({"version": _VERSION, "proofs": [*map(_fields, found)]})
    else:
        click.echo("\n".join(map(_described, found)) or f"{target}: no proof")
    return errors.OK if found else errors.BLOCKED


@command.command("verify")
@click.argument("target", metavar="COMMIT|FILE")
@format_option
def verify(target: str, fmt: str) -> int:
    """Verify the proofs of a commit, or in a file: signature, signer, age.

    Exit status 0: one is believed. 1: none is; each has its reason.
    """
    found = _find(current_repo(), target)
    if fmt == "json":
        print_json({"version": _VERSION, "proofs": [*map(_fields, found)]})
    for proof in found if fmt == "text" else ():
        title = plain_line(proof.statement.title) if proof.statement and not proof.reason else ""
        click.echo(f"{title}: {proof.state}" if title else proof.state)
    if not found and fmt == "text":
        click.echo(f"{target}: no proof")
    return errors.OK if any(not proof.reason for proof in found) else errors.BLOCKED


@command.command(
    "sign",
    help="Sign what the gates have shown here of commits, and add it to git notes.\n\n"
    f"{_RANGE_HELP} Only what ran on this machine is signed, with git's key for signatures "
    "(gpg.format = ssh, user.signingKey), or the one in GITGATES_PROOF_KEY.",
)
@click.argument("revisions", metavar="[RANGE]", required=False)
def sign(revisions: str | None) -> int:
    """Sign proofs of commits."""
    repo = current_repo()
    commits, notes = _commits(repo, revisions), ProofNotes(repo)
    known = statements_of(repo, commits)
    new = notes.unsigned(known)
    envelopes: dict[str, list[bytes]] = {}
    for statement, envelope in zip(new, signed(repo, new), strict=True):
        envelopes.setdefault(statement.tree, []).append(envelope)
    notes.add(envelopes)
    evident = {statement.tree for statement in known}
    for commit in commits:
        of_commit = [statement for statement in new if statement.tree == commit.tree]
        names = dict.fromkeys(gate.gate for statement in of_commit for gate in statement.gates)
        if names:
            state = f"signed: {', '.join(names)}"
        else:
            state = "was signed before" if commit.tree in evident else "no evidence of its gates"
        click.echo(f"{commit.id[:_SHORT]}  {state}  {plain_line(commit.subject)}")
    if not commits:
        click.echo("no commits to sign")
    return errors.OK


@command.command("export")
@click.argument("target", metavar="COMMIT")
@click.option("--output", "folder", metavar="DIR", default=".", help="Where to. Default: here.")
def export(target: str, folder: str) -> int:
    """Write the proofs of a commit to files.

    Each is an envelope, NAME.json. With NAME.pae and NAME.sig, the bytes that are signed and their
    signature, ssh-keygen alone confirms it; the command for that is printed.

    Exit status 1: there are none.
    """
    found = _find(current_repo(), target)
    pairs = [(proof, proof.envelope) for proof in found if proof.envelope]
    for number, (proof, envelope) in enumerate(pairs, 1):
        name = os.path.join(folder, f"{target.replace('/', '-')}-{number}")
        write_report("--output", f"{name}.json", proof.raw + b"\n")
        write_report("--output", f"{name}.pae", envelope.signed)
        write_report("--output", f"{name}.sig", envelope.signature)
        signer = proof.statement.signer if proof.statement else "SIGNER"
        click.echo(f"{name}.json: {proof.state}")
        click.echo(
            f"  ssh-keygen -Y verify -n {NAMESPACE} -I {quote(signer)} -f ALLOWED_SIGNERS "
            f"-s {quote(name)}.sig < {quote(name)}.pae"
        )
    if not pairs:
        click.echo(f"{target}: no proof")
    return errors.OK if pairs else errors.BLOCKED


@command.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
def import_files(files: tuple[str, ...]) -> int:
    """Add the proofs in files to git notes.

    Those that are not believed here are added, too, since whoever reads them verifies them. What is
    no proof of a commit is refused, and then nothing is added. Exit status 1: something was
    refused.
    """
    repo = current_repo()
    trust = trust_at(repo)
    added: dict[str, list[bytes]] = {}
    said, wrong = [], []
    for file in files:
        for proof in _in_file(trust, file):
            if proof.statement and proof.statement.tree:
                added.setdefault(proof.statement.tree, []).append(proof.raw)
                title = plain_line(proof.statement.title)
                said.append(f"{file}: {title}: added, {proof.state}")
            else:
                why = "it is about no tree" if proof.statement else plain_line(proof.reason, 400)
                wrong.append(f"gitgates: {file}: not a proof of a commit: {why}")
    if wrong:
        click.echo("\n".join(wrong), err=True)
        return errors.BLOCKED
    ProofNotes(repo).add(added)
    click.echo("\n".join(said))
    return errors.OK


def _commits(repo: Repo, revisions: str | None) -> list[Commit]:
    """Return the commits of a range. Raises: UsageError, GitError."""
    names = unpushed(repo.git) if revisions is None else range_of(repo.git, revisions)
    if revisions and len(names) == 1:  # one commit, and not all that lead to it
        names = ("--max-count=1", *names)
    return list_commits(repo.git, *names) if names else []


def _find(repo: Repo, target: str) -> list[FoundProof]:
    """Return the proofs of a commit, or those in a file.

    Raises: UsageError where it is neither.
    """
    trust = trust_at(repo)
    if tree := repo.git.resolve(f"{target}^{{tree}}"):
        return _of_tree(ProofNotes(repo), trust, tree)
    return _in_file(trust, target)


def _of_tree(notes: ProofNotes, trust: Trust, tree: str) -> list[FoundProof]:
    found = []
    for raw in notes.of_tree(tree):
        proof = _judged(raw, trust)
        if proof.statement and not proof.reason and proof.statement.tree != tree:
            proof = proof._replace(reason=f"{proof.statement.title}: it is about another tree")
        found.append(proof)
    return found


def _in_file(trust: Trust, file: str) -> list[FoundProof]:
    """Return the proofs in a file: an envelope, or one on each line."""
    try:
        raw = read_regular(file)
    except OSError as error:
        text = f"`{file}` is neither a commit nor a file: {error.strerror}"
        raise errors.UsageError(text) from error
    whole = _judged(raw.strip(), trust)
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if whole.envelope or len(lines) < 2:  # noqa: PLR2004 - more than one
        return [whole]
    return [_judged(line, trust) for line in lines]


def _judged(raw: bytes, trust: Trust) -> FoundProof:
    found = FoundProof(raw)
    try:
        envelope = read_envelope(raw)
        found = FoundProof(envelope.to_line(), envelope)
        found = found._replace(statement=read_payload(envelope.payload))
        trust.believed(raw)
    except RefusedError as error:
        return found._replace(reason=error.reason)
    return found


def _columns(proof: FoundProof) -> tuple[str, str]:
    if (statement := proof.statement) is None:
        return "unreadable", ""
    return plain_line(statement.signer), plain_line(
        ", ".join(gate.gate for gate in statement.gates)
    )


def _fields(proof: FoundProof) -> dict[str, Any]:
    fields = proof.statement._asdict() if proof.statement else None
    if proof.statement and fields:
        fields["gates"] = [gate._asdict() for gate in proof.statement.gates]
    return {"believed": not proof.reason, "reason": proof.reason, "statement": fields}


def _described(proof: FoundProof) -> str:
    statement = proof.statement
    if statement is None:
        return f"{proof.state}\n"
    made = f"signed {utc(statement.time_s)}, {age(statement.time_s)}, on {statement.platform}"
    key = proof.envelope.keyid if proof.envelope else ""
    about = [f"commit {commit}" for commit in statement.commits]
    lines = [
        statement.title,
        proof.state,
        made,
        *about,
        f"hook {statement.hook}, key {key}",
    ]
    rows: list[tuple[str, ...]] = [
        (
            gate.gate,
            gate.status,
            f"believed of {gate.origin}" if gate.origin else gate.maker or "a person, or not known",
            f"{gate.duration_s:.1f} s",
        )
        for gate in statement.gates
    ]
    gates = "".join(f"  {line}\n" for line in table(rows).splitlines()) if rows else ""
    return "\n".join(map(plain_line, lines)) + f"\n{counted(len(rows), 'gate')}:\n{gates}"
