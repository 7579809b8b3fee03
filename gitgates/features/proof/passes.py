"""Passes that others have signed, found in notes and the cache, and verified, for runs of gates.

Whatever goes wrong here is a miss, and the gate runs; the reason is given once.
"""

from __future__ import annotations

import time

from gitgates.core.errors import Interrupted
from gitgates.core.policy import providers
from gitgates.core.record import lazy
from gitgates.engine.reuse.signed_keys import FoundPass, definition_sha256
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed
from gitgates.features.proof.statement import GateProof, RefusedError, Statement
from gitgates.features.proof.trust import trust_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from gitgates.core.types import Config, Gate, GateResult
    from gitgates.features.proof.trust import Trust
    from gitgates.git.repo import Repo

    NewPass: TypeAlias = tuple[Gate, GateResult]

_LIMIT_S = 2.0  # for verifying in one run: somebody may have written any number of proofs
_MOST_SAID = 3


class SignedPasses:
    """The signed passes that one run may believe, and those that it signs."""

    def __init__(self, repo: Repo, config: Config, say: Callable[[str], None]) -> None:
        self._repo, self._say = repo, say
        self._caches = [
            provide(repo, config, say) for provide in providers(config, "verdict_cache")
        ]
        self._read: dict[bytes, Statement | str] = {}  # envelope → statement, or why it is refused
        self._left_s = _LIMIT_S
        self._said: set[str] = set()
        self.refusals: dict[str, str] = {}  # key → why its pass is not believed
        self.writes = any(cache.writes for cache in self._caches)

    @lazy
    def trust(self) -> Trust:
        """Whose proofs are believed here. Raises: GitError."""
        return trust_at(self._repo)

    def close(self) -> None:
        """Close the caches."""
        for cache in self._caches:
            cache.close()

    def find(self, gates: Mapping[str, Gate]) -> dict[str, FoundPass]:
        """Return key → believed pass; keys without one are missing."""
        passes: dict[str, FoundPass] = {}
        try:
            self._find_noted(passes, gates)
            self._find_cached(passes, gates)
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - no proof is worth a failed run
            self._tell(f"signed passes cannot be read: {error}")
        return passes

    def _find_noted(self, passes: dict[str, FoundPass], gates: Mapping[str, Gate]) -> None:
        notes, until_s = ProofNotes(self._repo), time.monotonic() + _LIMIT_S
        notes.read(gates)
        if not all(map(notes.has, gates)):
            for cache in self._caches:
                cache.start()  # while the trust settings are read
        for key, gate in gates.items():
            if time.monotonic() > until_s:
                self._tell(f"finding signed passes takes longer than {_LIMIT_S:g} s")
                return
            self._take(passes, key, gate, notes.with_key(key))

    def _find_cached(self, passes: dict[str, FoundPass], gates: Mapping[str, Gate]) -> None:
        for cache in self._caches:
            missing = [key for key in gates if key not in passes]
            if missing and not self.trust.signers:
                why_not = self.trust.why_nobody or f"nobody is trusted, at {self.trust.source}"
                self.refusals |= {key: why_not for key in missing if key not in self.refusals}
            elif missing:
                for key, envelope in cache.get(missing).items():
                    self._take(passes, key, gates[key], [envelope])

    def put(self, hook: str, content: str, passes: Mapping[str, NewPass]) -> None:
        """Sign this run's passes, key → gate and result, and write them to the cache.

        `content`: a digest of what the gates could see.
        """
        now = time.time()
        proofs = tuple(
            GateProof(
                gate=gate.name,
                status="passed",
                definition=definition_sha256(gate),
                is_exact=True,
                keys=(key,),
                maker=result.origin.maker or "",
                time_s=round(now, 3),
                duration_s=round(result.duration_s, 3),
            )
            for key, (gate, result) in passes.items()
        )
        try:
            (envelope,) = signed(self._repo, [Statement(content=content, hook=hook, gates=proofs)])
            for cache in self._caches:
                cache.put(dict.fromkeys(passes, envelope))
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._tell(f"the passes of this run were not signed for others: {error}")

    def _take(
        self, passes: dict[str, FoundPass], key: str, gate: Gate, envelopes: Iterable[bytes]
    ) -> None:
        """Put the first believed pass of a key into `passes`."""
        for envelope in envelopes:
            try:
                statement = self._believed(envelope)
                proof = statement.require(gate.name, key=key)
            except RefusedError as error:
                self.refusals[key] = error.reason
                continue
            if proof.status != "passed":
                self.refusals[key] = f"{statement.title}: gate `{gate.name}`: {proof.status}"
                continue
            self.refusals.pop(key, None)
            passes[key] = FoundPass(statement.signer, proof.time_s or statement.time_s)
            return
        if why_not := self.refusals.get(key):
            self._tell(f"a signed pass is not believed: {why_not}")

    def _believed(self, envelope: bytes) -> Statement:
        """Return what an envelope says. Raises: RefusedError."""
        if envelope not in self._read:
            began_s = time.monotonic()
            if self._left_s <= 0:
                raise RefusedError(f"verifying so many proofs takes longer than {_LIMIT_S:g} s")
            try:
                self._read[envelope] = self.trust.believed(envelope)
            except RefusedError as error:
                self._read[envelope] = error.reason
            self._left_s -= time.monotonic() - began_s
        read = self._read[envelope]
        if isinstance(read, str):
            raise RefusedError(read)
        return read

    def _tell(self, text: str) -> None:
        text = ". ".join(
            line.strip(" .") for line in text.splitlines()
        )  # hints have their own line
        if text not in self._said and len(self._said) < _MOST_SAID:
            self._say(text)
        self._said.add(text)
