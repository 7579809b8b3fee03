"""Move proofs between repositories: `refs/notes/gitgates`, and no other ref.

Whoever pushes first wins; the others fetch, merge by union and push again. Nothing is ever forced,
and no line is lost.
"""

from __future__ import annotations

import hashlib
import os
import random
import time

from gitgates.core.errors import GitError, UsageError
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed
from gitgates.git.notes import REF, unite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.features.proof.statement import Statement
    from gitgates.git.repo import Git, Repo
    from gitgates.proc.call import CompletedProcess

_COPIES = "refs/gitgates/notes"  # of remotes
_LIMIT_S = 120.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.1, 2.0
_FETCHES = 3
_NONE = b"couldn't find remote ref"
# What git says if another process changed the ref meanwhile, after which we try again.
_RACES = (b"lock", b"already exists", b"incorrect old value")
_FETCH = (
    *("-c", "maintenance.auto=false", "-c", "gc.auto=0"),
    *("fetch", "--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-filter"),
    *("--no-write-fetch-head", "--refmap="),
)
_PUSH = (
    "-c",
    "push.pushOption=",
    "push",
    "--quiet",
    "--no-verify",
    "--no-follow-tags",
    "--recurse-submodules=no",
)


def default_remote(git: Git) -> str:
    """Return the remote of the branch's upstream, else origin, else the only one.

    Raises: UsageError if there is none of these.
    """
    branch = git.ask("symbolic-ref", "--quiet", "--short", "HEAD").stdout
    key = f"branch.{os.fsdecode(branch).strip()}.remote"
    upstream = os.fsdecode(git.ask("config", "--get", key).stdout).strip()
    remotes = git.lines("remote")
    for name in (upstream, "origin"):
        if name in remotes:
            return str(name)
    if len(remotes) == 1:
        return remotes[0]
    if remotes:
        text = "there are several remotes, and the branch has no upstream"
        raise UsageError(text, f"Specify one as REMOTE: {', '.join(remotes)}")
    raise UsageError("there is no remote", "Specify an address as REMOTE, or: git remote add")


def sign_new(repo: Repo, statements: Sequence[Statement]) -> list[Statement]:
    """Sign the statements that are not in the notes yet, add them, and return them.

    Raises: ConfigError if there is no key; GitError.
    """
    notes = ProofNotes(repo)
    new = notes.unsigned(statements)
    envelopes: dict[str, list[bytes]] = {}
    for statement, envelope in zip(new, signed(repo, new), strict=True):
        envelopes.setdefault(statement.tree, []).append(envelope)
    notes.add(envelopes)
    return new


class Transfer:
    """Moves notes between a repository and one remote, given by name or address.

    `unattended`: git must not ask for anything. `limit_s`: for a whole push.
    """

    def __init__(
        self, repo: Repo, remote: str, *, limit_s: float = _LIMIT_S, unattended: bool = False
    ) -> None:
        self._repo, self._git, self._remote = repo, repo.git, remote
        self._limit_s, self._unattended = limit_s, unattended
        self._until = time.monotonic() + limit_s
        self._is_named = remote in repo.git.lines("remote")
        self._copy = f"{_COPIES}/{remote}"
        if not self._is_named or repo.git.ask("check-ref-format", self._copy).exit_status:
            digest = hashlib.sha256(os.fsencode(remote)).hexdigest()
            self._copy = f"{_COPIES}/{digest[:16]}"

    def fetch(self) -> dict[str, list[bytes]]:
        """Fetch the notes of the remote and add them to ours; return the new lines, by tree.

        Raises: GitError.
        """
        for _ in range(_FETCHES):
            fetched = self._ask(*_FETCH, "--", self._remote, f"+{REF}:{self._copy}")
            if not fetched.exit_status:
                return unite(self._repo, self._copy)
            if _NONE in fetched.stderr:
                return {}
            if not any(mark in fetched.stderr for mark in _RACES):
                break
        raise GitError(f"{self._remote}: proofs cannot be fetched: {_why(fetched.stderr)}")

    def push(self) -> None:
        """Push our notes to the remote; if others were faster, merge theirs and try again.

        Raises: GitError.
        """
        if not self._git.resolve(REF):
            return
        # Git refuses to push a single ref to a remote that is a mirror.
        single = ("-c", f"remote.{self._remote}.mirror=false") if self._is_named else ()
        wait_s = _SHORTEST_WAIT_S
        while True:
            pushed = self._ask(*single, *_PUSH, "--", self._remote, f"{REF}:{REF}")
            if not pushed.exit_status:
                return
            # Before fetching, so that the fetched notes are still the newest at the push.
            time.sleep(random.uniform(0, wait_s))  # noqa: S311 - so that not all try at once
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            before = self._git.resolve(self._copy)
            self.fetch()
            is_race = any(mark in pushed.stderr for mark in _RACES)
            has_moved = self._git.resolve(self._copy) != before
            if not (is_race or has_moved) or time.monotonic() > self._until:
                raise GitError(f"{self._remote}: proofs cannot be pushed: {_why(pushed.stderr)}")

    def _ask(self, *args: str) -> CompletedProcess:
        if not self._unattended:
            return self._git.ask(*args)
        limit_s = max(self._until - time.monotonic(), _SHORTEST_WAIT_S)
        try:
            return self._git.ask_unattended(*args, limit_s=limit_s)
        except TimeoutError as error:
            raise GitError(f"{self._remote}: no answer within {self._limit_s:g} s") from error


def _why(stderr: bytes) -> str:
    """Return what git says, in one line, without its hints."""
    lines = os.fsdecode(stderr).splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.startswith("hint:")]
    return "; ".join(told) or "git does not say why"
