"""Whose proofs are believed: merged settings decide that, not those that are being judged.

`[tool.gitgates.proof]` and the file of allowed signers are read at the merge base with the remote's
default branch and, if they have changed since, also on that branch: a signer whom it no longer
trusts is not believed on an older branch, either. Any doubt is a refusal with a reason, and the
gates run.
"""

from __future__ import annotations

import os
import time
from fnmatch import fnmatchcase

from gitgates.config.load import checked
from gitgates.core.errors import ConfigError, GitError
from gitgates.core.record import Record
from gitgates.engine.findings.base import find_base
from gitgates.engine.reuse.visible_content import digest
from gitgates.features.proof import ssh_keys
from gitgates.features.proof.envelope import read_envelope
from gitgates.features.proof.statement import RefusedError, Statement, read_payload
from gitgates.git.object_store import read_blobs
from gitgates.git.repo import Repo
from gitgates.git.settings import settings_in
from gitgates.store.files import (
    make_folder,
    read_cached,
    read_or_empty,
    read_regular,
    replace_cached,
)

__all__ = ["RefusedError", "Trust", "trust_at"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.features.proof.envelope import Envelope

_LARGEST = 1 << 20  # bytes of a file of allowed signers
_FUTURE_S = 600.0  # how far two machines' clocks may differ
_DAY_S = 86400.0
_MOST_VERIFIED = 2000  # signatures that are remembered
# With these options, whether a key counts depends on the time.
_TIMED = (b"valid-", b"cert-authority")
_TABLE = "[tool.gitgates.proof]"


class Trust(Record):
    """Whose proofs count, and which keys they have."""

    repo: Repo
    settings: ssh_keys.SshSettings
    signers: tuple[str, ...] = ()  # identities; `*` matches any text; empty: nobody is believed
    agents: bool = True  # whether proofs from agents' sessions count
    max_age_s: float = 0.0  # 0: any age
    allowed_signers: bytes = b""  # the content of that file
    source: str = ""  # where the settings are from, for display
    why_nobody: str = ""  # the problem that makes nobody believed; empty: none
    later: tuple[Trust, ...] = ()  # the default branch's, which must also believe a proof

    @property
    def digest(self) -> str:
        """A digest of everything that decides who is believed.

        If the time matters, it changes every day, or every `max_age_s` if that is shorter.
        """
        revoked = self.settings.revoked_keys  # as they were merged
        if revoked is None:
            revoked = read_or_empty(self.settings.revoked) if self.settings.revoked else b""
        period_s = min(self.max_age_s or _DAY_S, _DAY_S)
        period = int(time.time() // period_s) if self.max_age_s or self._depends_on_time else 0
        rules = repr((self.signers, self.agents, self.max_age_s, self.why_nobody, period))
        later = [trust.digest for trust in self.later]
        return digest(rules, self.allowed_signers, revoked, *later)

    def believed(self, raw: bytes) -> Statement:
        """Return the statement in an envelope, if its signer is believed.

        Raises: RefusedError with the reason if it is not.
        """
        try:
            envelope = read_envelope(raw)
            statement = read_payload(envelope.payload)
        except RefusedError as error:
            raise RefusedError(f"no valid proof: {error}") from error
        try:
            self.require(envelope, statement)
        except RefusedError as error:
            raise RefusedError(f"{statement.title}: {error}") from error
        return statement

    def require(self, envelope: Envelope, statement: Statement) -> None:
        """Raise RefusedError if the signer of an envelope with a statement is not believed."""
        self._require_signer(statement.signer)
        self._require_signature(envelope, statement.signer)
        self._require_time(statement)
        self._require_person(statement)
        for trust in self.later:
            trust.require(envelope, statement)

    def _require_signer(self, signer: str) -> None:
        if not self.signers:
            raise RefusedError(self.why_nobody or f"{_TABLE} trusts nobody, at {self.source}")
        if not any(_matches(pattern, signer) for pattern in self.signers):
            names = ", ".join(self.signers)
            raise RefusedError(f"its signer is not trusted: {_TABLE} has {names}, at {self.source}")
        if not self.allowed_signers:
            raise RefusedError(self.why_nobody or "the file of allowed signers is empty")

    def _require_signature(self, envelope: Envelope, signer: str) -> None:
        known_abs = f"{self.repo.shared_state_abs}/{ssh_keys.FOLDER}/verified"
        mark = "" if self._depends_on_time else self._mark(envelope, signer)
        verified = (read_cached(known_abs) if mark else None) or {}
        if mark and mark in verified:
            return
        ssh_keys.verify(
            self.repo,
            self.settings,
            message=envelope.signed,
            signature=envelope.signature,
            identity=signer,
            allowed_signers=self.allowed_signers,
        )
        if mark:
            newest = dict.fromkeys([*verified, mark][-_MOST_VERIFIED:], True)
            try:
                make_folder(os.path.dirname(known_abs))
                replace_cached(known_abs, newest, sync=False)
            except OSError:
                return  # the next run verifies it again

    @property
    def _depends_on_time(self) -> bool:
        signers = self.allowed_signers.lower()
        return bool(self.settings.revoked) or any(option in signers for option in _TIMED)

    def _mark(self, envelope: Envelope, signer: str) -> str:
        return digest(envelope.signed, envelope.signature, signer, self.allowed_signers)

    def _require_time(self, statement: Statement) -> None:
        now = time.time()
        times = [statement.time_s, *(proof.time_s for proof in statement.gates if proof.time_s)]
        if max(times) > now + _FUTURE_S:
            raise RefusedError("it is from the future: are the clocks of both machines right?")
        if self.max_age_s and min(times) < now - self.max_age_s:
            days = f"{(now - min(times)) / _DAY_S:.1f} days old"
            raise RefusedError(f"it is {days}, and max_age is {self.max_age_s / _DAY_S:.1f} days")

    def _require_person(self, statement: Statement) -> None:
        if self.agents:
            return
        for proof in statement.gates:
            if proof.maker == "agent":
                raise RefusedError(
                    f"gate `{proof.gate}` ran in an agent's session, and `agents` is false"
                )


def trust_at(repo: Repo) -> Trust:
    """Return whose proofs count in a repository, by the merge base with its remote.

    Raises: GitError.
    """
    # Pushed refs/replace/* must not decide what was merged.
    repo = repo.as_stored
    nobody = Trust(repo, ssh_keys.settings_of(repo))
    base = find_base(repo.git, of_remote=True)
    if base is None or not base.commit:
        why = base.why_none if base else "there is no commit yet"
        return nobody._replace(why_nobody=f"nobody is trusted without a merge base: {why}")
    merged = _trust_in(nobody._replace(source=base.name), base.commit)
    tip = repo.git.resolve(f"refs/remotes/{base.branch}^{{commit}}")
    if tip == base.commit:
        return merged
    now = _trust_in(nobody._replace(source=f"{base.branch}, which is newer than HEAD"), tip)
    is_same = now._replace(source="") == merged._replace(source="")
    return merged if is_same else merged._replace(later=(now,))


def _trust_in(nobody: Trust, commit: str) -> Trust:
    """Return whose proofs count, by the settings in a commit."""
    repo = nobody.repo
    try:
        config = checked(settings_in(repo.git, [commit])[0])
    except ConfigError as error:
        first = error.message.splitlines()[0]
        return nobody._replace(why_nobody=f"the settings at {nobody.source} are not valid: {first}")
    table: dict[str, Any] = config.tables.get("proof", {}) if config else {}
    trust = table.get("trust") or {}
    if not trust.get("signers"):
        return nobody
    allowed = nobody._replace(
        signers=tuple(trust["signers"]), agents=trust["agents"], max_age_s=trust["max_age_s"]
    )
    file = str(table.get("allowed_signers", ""))
    try:
        signers = _signers_file(repo, nobody.settings, commit, file)
        revoked = _path_in_tree(repo, nobody.settings.revoked) if nobody.settings.revoked else ""
        content = _as_merged(repo, commit, revoked) if revoked else None
    except (GitError, OSError) as error:
        return allowed._replace(why_nobody=f"the allowed signers cannot be read: {error}")
    settings = nobody.settings._replace(revoked_keys=content)
    return allowed._replace(allowed_signers=signers, settings=settings)


def _signers_file(repo: Repo, settings: ssh_keys.SshSettings, commit: str, file: str) -> bytes:
    """Return the file of allowed signers: from a commit if the repository has it, else from disk.

    Raises: GitError or OSError if it cannot be read, or there is none.
    """
    path_abs = os.path.join(repo.root_abs, file) if file else settings.allowed_signers
    if not path_abs:
        raise GitError(f"neither {_TABLE} nor git's gpg.ssh.allowedSignersFile names them")
    path = os.path.normpath(file) if file else _path_in_tree(repo, path_abs)
    return _as_merged(repo, commit, path) if path else read_regular(path_abs)


def _as_merged(repo: Repo, commit: str, path: str) -> bytes:
    """Return a file's content in a commit. Raises: GitError if the commit does not have it."""
    name = f"{commit}:{path}"
    content = read_blobs(repo.git, [name], _LARGEST).get(name)
    if content is None:
        raise GitError(f"there is no {path} in the merge base {commit[:12]}")
    return content


def _path_in_tree(repo: Repo, path_abs: str) -> str:
    """Return where a file is in the tree, by its name or where links lead; empty if outside.

    A file in another worktree is also in the tree, whatever is checked out there.
    """
    worktrees = [
        line.removeprefix("worktree ")
        for line in repo.git.lines("worktree", "list", "--porcelain")
        if line.startswith("worktree ")
    ]
    roots = {*map(os.path.realpath, [repo.root_abs, *worktrees])}
    roots -= {os.path.realpath(repo.common_dir_abs)}  # a bare repository is listed as a worktree
    for name in (
        path_abs,
        os.path.realpath(path_abs),
    ):  # a link in the tree is itself under judgement
        folder_abs = name
        while folder_abs != "/":
            folder_abs = os.path.dirname(folder_abs)
            if os.path.realpath(folder_abs) in roots:
                path = os.path.relpath(name, folder_abs)
                return "" if path.startswith(".git/") else path
    return ""


def _matches(pattern: str, identity: str) -> bool:
    """Return whether an identity matches a pattern, in which `*` is any text."""
    return fnmatchcase(identity, pattern.replace("[", "[[]").replace("?", "[?]"))
