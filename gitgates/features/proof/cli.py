"""`gitgates proof`: signed proofs that gates passed."""

from __future__ import annotations

import os
from shlex import quote
from typing import Any

import click

from gitgates.config.load import load
from gitgates.core import errors
from gitgates.core.clean import counted, plain_line
from gitgates.core.record import Record
from gitgates.engine.reuse.signed_keys import definition_sha256
from gitgates.features.proof.envelope import Envelope, read_envelope
from gitgates.features.proof.evidence import SignedEvidence
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import statements_of
from gitgates.features.proof.ssh_keys import NAMESPACE
from gitgates.features.proof.statement import RefusedError, Statement, read_payload
from gitgates.features.proof.transfer import Transfer, default_remote, sign_new
from gitgates.features.proof.trust import Trust, trust_at
from gitgates.git.commits import Commit, list_commits
from gitgates.git.notes import REF
from gitgates.git.paths import range_of, unpushed
from gitgates.git.repo import Repo
from gitgates.store.files import read_regular
from gitgates.store.log import utc
from gitgates.store.proofs import age
from gitgates.verbs.output import format_option, print_json, table, write_report
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Gate

_VERSION = 1
_SHORT = 7
_LONGEST_REASON = 400
_MOST_COMMITS = "--max-count=100"
_MOST_NAMED = 5
_RANGE_HELP = (
    "RANGE is as in `git log`, such as origin/main..HEAD. Default: the commits that are not in the "
    "upstream of the branch or, if it has none, in no remote."
)


class JudgedProof(Record):
    """A proof, and whether it is believed here."""

    raw: bytes
    envelope: Envelope | None = None  # None: it is not an envelope
    statement: Statement | None = None  # None: it is not a statement of this version
    reason: str = ""  # why it is not believed; empty: it is

    @property
    def state(self) -> str:
        """Whether it is believed, for display."""
        return (
            f"not believed: {plain_line(self.reason, _LONGEST_REASON)}"
            if self.reason
            else "believed"
        )

    def as_row(self, commit: str) -> tuple[str, ...]:
        """Return a table row: commit, signer, gates, state."""
        if self.statement is None:
            return commit, "unreadable", "", self.state
        gates = ", ".join(proof.gate for proof in self.statement.gates)
        return commit, plain_line(self.statement.signer), plain_line(gates), self.state

    def as_fields(self) -> dict[str, Any]:
        """Return the proof as data for JSON."""
        fields = self.statement._asdict() if self.statement else None
        if self.statement and fields:
            fields["gates"] = [proof._asdict() for proof in self.statement.gates]
        return {"believed": not self.reason, "reason": self.reason, "statement": fields}

    def as_markdown(self) -> str:
        """Return a paragraph: which gates, on what, by whom and when, and what was not checked."""
        if (statement := self.statement) is None:
            return f"A proof is {self.state}."
        by_end: dict[str, list[str]] = {"passed": [], "reused": [], "not checked": []}
        for proof in statement.gates:
            name = f"`{plain_line(proof.gate)}`"
            if proof.status == "passed" and not proof.origin:
                by_end["passed"].append(name)
            elif proof.status == "passed":
                by_end["reused"].append(f"{name} (of {plain_line(proof.origin)})")
            else:
                by_end["not checked"].append(f"{name} ({plain_line(proof.status)})")
        parts = [f"{end}: {', '.join(names)}" for end, names in by_end.items() if names]
        commit = f", commit `{statement.commits[0][:_SHORT]}`" if statement.commits else ""
        about = f"tree `{(statement.tree or statement.content)[:_SHORT]}`{commit}"
        who = f"{plain_line(statement.signer)}, {utc(statement.time_s)}"
        whether = f" This proof is {self.state}." if self.reason else ""
        return (
            f"Gates of `{statement.hook}` on {about}: {'; '.join(parts)}. Signed by {who}.{whether}"
        )

    def as_text(self) -> str:
        """Return what the proof says, as lines of text."""
        if (statement := self.statement) is None:
            return f"{self.state}\n"
        lines = [
            *(statement.title, self.state),
            f"signed {utc(statement.time_s)}, {age(statement.time_s)}, on {statement.platform}",
            *(f"commit {commit}" for commit in statement.commits),
            f"hook {statement.hook}, key {self.envelope.keyid if self.envelope else ''}",
        ]
        rows: list[tuple[str, ...]] = [
            (
                f"  {proof.gate}",
                proof.status,
                f"not believed: {proof.why_not}" if proof.why_not else proof.maker,
                f"{proof.duration_s:.1f} s",
            )
            for proof in statement.gates
        ]
        return "".join(f"{plain_line(line)}\n" for line in lines) + table(rows)


@click.group("proof")
def command() -> None:
    """Sign, show, verify and share proofs of how gates ended.

    A proof says how gates ended on a commit's tree, and is signed with your ssh key, as git signs
    commits. Proofs are stored in git notes, refs/notes/gitgates. [tool.gitgates.proof] sets whose
    proofs count.
    """


@command.command(
    "list", help=f"List the proofs of commits, and whether they count.\n\n{_RANGE_HELP}"
)
@click.argument("revisions", metavar="[RANGE]", required=False)
@format_option
def list_proofs(revisions: str | None, fmt: str) -> int:
    """List proofs."""
    repo = current_repo()
    trust, notes, commits = trust_at(repo), ProofNotes(repo), _commits(repo, revisions)
    by_commit = {commit.id: _of_tree(notes, trust, commit.tree) for commit in commits}
    if fmt == "json":
        documents = [
            {
                "commit": commit.id,
                "tree": commit.tree,
                "proofs": [proof.as_fields() for proof in by_commit[commit.id]],
            }
            for commit in commits
        ]
        print_json({"version": _VERSION, "commits": documents})
        return errors.OK
    rows: list[tuple[str, ...]] = []
    for commit, proofs in by_commit.items():
        none = (commit[:_SHORT], "no proof", "", "")
        rows += [proof.as_row(commit[:_SHORT]) for proof in proofs] or [none]
    click.echo(table(rows) if rows else "no commits\n", nl=False)
    return errors.OK


@command.command("show")
@click.argument("target", metavar="COMMIT|FILE")
@click.option("--markdown", is_flag=True, help="As a paragraph for a pull request.")
@format_option
def show(target: str, fmt: str, *, markdown: bool) -> int:
    """Show what the proofs of a commit, or those in a file, say.

    Exit status 1: there are none.
    """
    proofs = _proofs_of(target)
    if fmt == "json":
        _print_proofs(proofs)
    elif markdown:
        none = f"No gates are proved for `{plain_line(target)}`."
        click.echo("\n\n".join(proof.as_markdown() for proof in proofs) or none)
    else:
        click.echo(
            "\n".join(proof.as_text() for proof in proofs) or f"{target}: no proof\n", nl=False
        )
    return errors.OK if proofs else errors.BLOCKED


@command.command("verify")
@click.argument("target", metavar="COMMIT|FILE")
@format_option
def verify(target: str, fmt: str) -> int:
    """Verify the proofs of a commit, or those in a file: signature, signer, age.

    Exit status 0: at least one is believed. 1: none is; the reasons are printed.
    """
    proofs = _proofs_of(target)
    if fmt == "json":
        _print_proofs(proofs)
    else:
        lines = [
            f"{plain_line(proof.statement.title)}: {proof.state}"
            if proof.statement and not proof.reason  # a reason already names it
            else proof.state
            for proof in proofs
        ]
        click.echo("\n".join(lines or [f"{target}: no proof"]))
    return errors.OK if any(not proof.reason for proof in proofs) else errors.BLOCKED


@command.command(
    "sign",
    help="Sign how gates ended here on commits, and add the proofs to git notes.\n\n"
    f"{_RANGE_HELP} Only what ran on this machine is signed, with git's signing key "
    "(gpg.format = ssh, user.signingKey), or the key in GITGATES_PROOF_KEY.",
)
@click.argument("revisions", metavar="[RANGE]", required=False)
def sign(revisions: str | None) -> int:
    """Sign proofs of commits."""
    repo = current_repo()
    commits = _commits(repo, revisions)
    statements = statements_of(repo, commits)
    new = sign_new(repo, statements)
    evident = {statement.tree for statement in statements}
    for commit in commits:
        of_commit = [statement for statement in new if statement.tree == commit.tree]
        names = dict.fromkeys(proof.gate for statement in of_commit for proof in statement.gates)
        if names:
            state = f"signed: {', '.join(names)}"
        else:
            state = "already signed" if commit.tree in evident else "no evidence that its gates ran"
        click.echo(f"{commit.id[:_SHORT]}  {state}  {plain_line(commit.subject)}")
        of_tree = [statement for statement in statements if statement.tree == commit.tree]
        click.echo(_gates_run_again(of_tree), nl=False)
    if not commits:
        click.echo("no commits to sign")
    return errors.OK


def _gates_run_again(of_tree: list[Statement]) -> str:
    """Return which gates others will run on a tree, and why, in lines."""
    ends = [proof for statement in of_tree for proof in statement.gates]
    proved = {proof.gate for proof in ends if proof.origin or not proof.why_not}
    gates: dict[str, dict[str, None]] = {}  # why not → names
    for proof in ends:
        if proof.gate not in proved:
            gates.setdefault(proof.why_not, {})[proof.gate] = None
    lines = (f"others will run {', '.join(names)} again: {why}" for why, names in gates.items())
    return "".join(f"  {plain_line(line, _LONGEST_REASON)}\n" for line in lines)


@command.command("export")
@click.argument("target", metavar="COMMIT")
@click.option("--output", "folder", metavar="DIR", default="", help="Default: the current folder.")
def export(target: str, folder: str) -> int:
    """Write the proofs of a commit to files.

    Each proof is an envelope, NAME.json. NAME.pae and NAME.sig are the signed bytes and their
    signature, which ssh-keygen alone can verify; the command for that is printed.

    Exit status 1: there are none.
    """
    proofs = [(proof, proof.envelope) for proof in _proofs_of(target) if proof.envelope]
    for number, (proof, envelope) in enumerate(proofs, 1):
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
    if not proofs:
        click.echo(f"{target}: no proof")
    return errors.OK if proofs else errors.BLOCKED


@command.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
def import_files(files: tuple[str, ...]) -> int:
    """Add the proofs in files to git notes.

    Proofs that are not believed here are added, too, because every reader verifies them. If a file
    has anything other than a commit's proof, nothing is added.

    Exit status 1: nothing was added.
    """
    repo = current_repo()
    trust = trust_at(repo)
    added: dict[str, list[bytes]] = {}
    lines, problems = [], []
    for file in files:
        for proof in _in_file(trust, file):
            if proof.statement and proof.statement.tree:
                added.setdefault(proof.statement.tree, []).append(proof.raw)
                title = plain_line(proof.statement.title)
                lines.append(f"{file}: {title}: added, {proof.state}")
            else:
                why = "it does not name a tree" if proof.statement else proof.reason
                why = plain_line(why, _LONGEST_REASON)
                problems.append(f"gitgates: {file}: not a proof of a commit: {why}")
    if problems:
        click.echo("\n".join(problems), err=True)
        return errors.BLOCKED
    ProofNotes(repo).add(added)
    click.echo("\n".join(lines))
    return errors.OK


@command.command("fetch")
@click.argument("remote", required=False)
def fetch(remote: str | None) -> int:
    """Fetch proofs from REMOTE, and add them to the local ones.

    REMOTE is a name or an address. Default: the remote of the branch's upstream, else origin, else
    the only one. Only refs/notes/gitgates and a copy of the remote's ref are changed. A remote
    without proofs is not an error.

    New proofs that do not count here are named: those not signed by somebody who is trusted, about
    another tree, or about gates that are configured differently.

    Exit status 0: done, or there are none. 74: git cannot fetch them.
    """
    repo = current_repo()
    name = remote or default_remote(repo.git)
    news = Transfer(repo, name).fetch()
    count = sum(map(len, news.values()))
    click.echo(f"{name}: {counted(count, 'new proof')}" if count else f"{name}: no new proofs")
    for text in _not_counting(repo, news) if news else ():
        click.echo(f"gitgates: not believed: {plain_line(text)}", err=True)
    return errors.OK


def _not_counting(repo: Repo, news: dict[str, list[bytes]]) -> list[str]:
    """Return which new proofs do not count, and why: one for each reason."""
    definitions = {gate.name: definition_sha256(gate) for gate in _gates(repo)}
    evidence, by_reason = SignedEvidence(repo, lambda _text: None), dict[str, list[str]]()
    try:
        for tree, envelopes in news.items():
            for raw in envelopes:
                title, why = evidence.why_not(tree, raw, definitions)
                if why:
                    by_reason.setdefault(why, []).append(title)
    except errors.GitError as error:
        by_reason[str(error)] = ["the settings of whose proofs count cannot be read"]
    texts = [
        f"{titles[0]}: {why}" + (f" (and {len(titles) - 1} more)" if len(titles) > 1 else "")
        for why, titles in by_reason.items()
    ]
    left_out = len(texts) - _MOST_NAMED
    return texts[:_MOST_NAMED] + ([f"{left_out} more, for other reasons"] if left_out > 0 else [])


def _gates(repo: Repo) -> tuple[Gate, ...]:
    try:
        config = load(repo.root_abs)
    except errors.ConfigError:
        return ()
    return config.gates if config else ()


@command.command("push")
@click.argument("remote", required=False)
def push(remote: str | None) -> int:
    """Sign this machine's proofs, and push them to REMOTE.

    Signs how gates ended on the last 100 commits of HEAD, if it has not done so before. Pushes only
    refs/notes/gitgates, without force and without hooks; proofs that others have pushed are fetched
    and kept. REMOTE is as in `gitgates proof fetch`.

    Exit status 0: done, or there are no proofs. 74: git cannot push them. 78: there is no key to
    sign with, and there are no signed proofs.
    """
    repo = current_repo()
    name, count = remote or default_remote(repo.git), 0
    try:
        commits = list_commits(repo.git, _MOST_COMMITS, "HEAD") if repo.head else []
        count = len(sign_new(repo, statements_of(repo, commits)))
    except errors.ConfigError as error:
        if not repo.git.resolve(REF):
            raise
        click.echo(f"gitgates: nothing was signed: {error}", err=True)
    Transfer(repo, name).push()
    new = f"{counted(count, 'proof')} signed and pushed"
    click.echo(f"{name}: {new if count else 'no new proofs were signed'}")
    return errors.OK


def _print_proofs(proofs: list[JudgedProof]) -> None:
    print_json({"version": _VERSION, "proofs": [proof.as_fields() for proof in proofs]})


def _commits(repo: Repo, revisions: str | None) -> list[Commit]:
    """Return the commits of a range. Raises: UsageError, GitError."""
    names = unpushed(repo.git) if revisions is None else range_of(repo.git, revisions)
    if revisions and len(names) == 1:  # one commit, without its ancestors
        names = ("--max-count=1", *names)
    return list_commits(repo.git, *names) if names else []


def _proofs_of(target: str) -> list[JudgedProof]:
    """Return the proofs of a commit, or those in a file. Raises: UsageError if it is neither."""
    repo = current_repo()
    trust = trust_at(repo)
    if tree := repo.git.resolve(f"{target}^{{tree}}"):
        return _of_tree(ProofNotes(repo), trust, tree)
    return _in_file(trust, target)


def _of_tree(notes: ProofNotes, trust: Trust, tree: str) -> list[JudgedProof]:
    proofs = [_judged(raw, trust) for raw in notes.of_tree(tree)]
    return [
        proof._replace(reason=proof.reason or f"{proof.statement.title}: it is about another tree")
        if proof.statement and proof.statement.tree != tree
        else proof
        for proof in proofs
    ]


def _in_file(trust: Trust, file: str) -> list[JudgedProof]:
    """Return the proofs in a file: an envelope, or one on each line."""
    try:
        raw = read_regular(file)
    except OSError as error:
        text = f"`{file}` is neither a commit nor a file: {error.strerror}"
        raise errors.UsageError(text) from error
    whole = _judged(raw.strip(), trust)
    lines = [line for line in raw.split(b"\n") if line.strip()]
    return [whole] if whole.envelope or not lines[1:] else [_judged(line, trust) for line in lines]


def _judged(raw: bytes, trust: Trust) -> JudgedProof:
    proof = JudgedProof(raw)
    try:
        envelope = read_envelope(raw)
        proof = JudgedProof(envelope.to_line(), envelope)
        proof = proof._replace(statement=read_payload(envelope.payload))
        trust.believed(raw)
    except RefusedError as error:
        return proof._replace(reason=error.reason)
    return proof
