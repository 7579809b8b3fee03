"""Ways to forge a proof: none is believed, and each is refused for its own reason."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Repo
from proof_support import (
    CI,
    DEFINITION,
    GATE,
    KEY,
    TREE,
    edited,
    envelope_of,
    make_key,
    proof_by,
    signature_of,
    signer,
    statement,
    trust_of,
    trusting,
)

from gitgates.features.proof.envelope import Envelope, read_envelope
from gitgates.features.proof.statement import RefusedError, to_payload
from gitgates.features.proof.trust import Trust

DAY_S = 86400


class Keys(NamedTuple):
    """Keys of a trusted signer, of one who is known and not trusted, and of others."""

    ci: Path
    bob: Path  # a signer in the file, whom nobody trusts
    thief: Path  # in no file
    expired: Path
    of_git: Path  # for commits only
    gone: Path  # was in the file


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    return Keys(*(make_key(folder / name) for name in Keys._fields))


@pytest.fixture(scope="module")
def trust(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Trust:
    """Return the trust of a repository in which one signer is trusted, of those in its file."""
    repo = Repo.init(tmp_path_factory.mktemp("trusting") / "repo")
    lines = (
        signer(CI, keys.ci, 'namespaces="gitgates"'),
        signer("bob@example.com", keys.bob),
        signer("old@ci.example.com", keys.expired, 'valid-before="20200101"'),
        signer("git@ci.example.com", keys.of_git, 'namespaces="git"'),
    )
    pattern = '["ci@example.com", "*@ci.example.com"]'
    table = f'{{ signers = {pattern}, agents = false, max_age = "30d" }}'
    trusting(repo, "".join(lines), table)
    return trust_of(repo)


def refused(trust: Trust, envelope: bytes, *wanted: str, **facts: str) -> str:
    """Return why a proof does not count, without what it is about; `wanted`: the gate."""
    try:
        trust.believed(envelope).require(*wanted or ("all",), **facts)
    except RefusedError as error:
        return error.reason.removeprefix(f"proof of {CI} about tree {TREE[:7]}: ")
    return "believed"


def envelope_with(envelope: bytes, **fields: Any) -> bytes:
    return json.dumps(json.loads(envelope) | fields).encode()


def signature_with(envelope: bytes, **fields: Any) -> bytes:
    document = json.loads(envelope)
    document["signatures"][0] |= fields
    return json.dumps(document).encode()


def payload_with(key: Path, before: bytes, after: bytes, **fields: Any) -> bytes:
    """Return an envelope whose payload was changed before it was signed."""
    payload = to_payload(statement(**fields))
    assert payload.count(before) >= 1
    return envelope_of(payload.replace(before, after), key)


def document_with(key: Path, edit: Callable[[Any], Any]) -> bytes:
    """Return an envelope, signed by this key, whose statement was changed before."""
    document = json.loads(to_payload(statement()))
    edit(document)
    return envelope_of(json.dumps(document).encode(), key)


def swapped(payload_of: bytes, signature_of_: bytes) -> bytes:
    """Return the payload of one envelope, with the signature of another one."""
    return envelope_with(payload_of, signatures=json.loads(signature_of_)["signatures"])


def test_what_is_not_forged_is_believed(trust: Trust, keys: Keys) -> None:
    found = trust.believed(proof_by(keys.ci))
    wanted = {"tree": TREE, "definition": DEFINITION, "key": KEY}
    assert found.require("all", **wanted).status == "passed"


NO_STATEMENT = "no valid proof: its payload is not a statement of gitgates"
NOT_VALID = "its signature is not valid: "
INCORRECT = f"{NOT_VALID}Signature verification failed: incorrect signature"
NO_KEY = f"its signature is not valid: no key of {CI} in the allowed signers has signed it"
NOT_TRUSTED = "its signer is not trusted: [tool.gitgates.proof] has ci@example.com, *@ci."


def _other_result(payload: Any) -> None:
    payload["predicate"]["configuration"][1]["annotations"]["status"] = "passed"
    payload["predicate"]["result"] = "PASSED"


def _other_subject(payload: Any) -> None:
    payload["subject"][0]["digest"]["gitTree"] = "a" * 40


def _other_gate(payload: Any) -> None:
    payload["predicate"]["configuration"][1]["name"] = "tests"
    payload["predicate"]["passedTests"] = ["tests"]


def _other_time(payload: Any) -> None:
    payload["predicate"]["configuration"][0]["annotations"]["time"] = time.time() + 1


def _compact(envelope: bytes) -> bytes:
    """Return an envelope whose payload is the same JSON, but for its white space."""
    payload = json.loads(read_envelope(envelope).payload)
    compact = json.dumps(payload, separators=(",", ":")).encode()
    return envelope_with(envelope, payload=base64.b64encode(compact).decode())


def _without_dsse(payload: bytes, key: Path) -> bytes:
    return Envelope(payload, signature_of(payload, key), "").to_line()


FAILED = (GATE._replace(status="failed", time_s=time.time()),)
Forge = Callable[[Keys], bytes]
# What was signed by the trusted key, and changed or put elsewhere afterwards.
CHANGED: dict[str, tuple[Forge, str]] = {
    "edited verdict": (
        lambda k: edited(proof_by(k.ci, gates=FAILED), _other_result),
        "no valid proof: its payload has fields that a statement of gitgates does not have",
    ),
    "edited tree": (
        lambda k: edited(proof_by(k.ci), _other_subject),
        f"proof of {CI} about tree aaaaaaa: {INCORRECT}",
    ),
    "edited gate": (lambda k: edited(proof_by(k.ci), _other_gate), INCORRECT),
    "edited time": (lambda k: edited(proof_by(k.ci), _other_time), INCORRECT),
    "payload written anew": (lambda k: _compact(proof_by(k.ci)), INCORRECT),
    "envelope swapped": (
        lambda k: swapped(proof_by(k.ci, hook="a"), proof_by(k.ci, hook="b")),
        INCORRECT,
    ),
    "signature of another key": (lambda k: swapped(proof_by(k.ci), proof_by(k.thief)), INCORRECT),
    "signed without DSSE": (lambda k: _without_dsse(to_payload(statement()), k.ci), INCORRECT),
    "signature of a commit": (
        lambda k: envelope_of(to_payload(statement()), k.ci, namespace="git"),
        "its signature is not valid: Couldn't verify signature: namespace does not match",
    ),
    "two signatures": (
        lambda k: envelope_with(
            proof_by(k.ci), signatures=json.loads(proof_by(k.ci))["signatures"] * 2
        ),
        "no valid proof: it has 2 signatures, expected one",
    ),
    "no signature": (
        lambda k: envelope_with(proof_by(k.ci), signatures=[]),
        "no valid proof: it has 0 signatures, expected one",
    ),
    "signatures no list": (
        lambda k: envelope_with(proof_by(k.ci), signatures=None),
        "no valid proof: it has no list of signatures, expected one",
    ),
    "empty signature": (
        lambda k: signature_with(proof_by(k.ci), sig=""),
        "no valid proof: its signature was not made by ssh-keygen",
    ),
    "signature of another kind": (
        lambda k: signature_with(proof_by(k.ci), sig=base64.b64encode(b"\0" * 64).decode()),
        "no valid proof: its signature was not made by ssh-keygen",
    ),
    "armor without content": (
        lambda k: signature_with(
            proof_by(k.ci),
            sig=base64.b64encode(
                b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n"
            ).decode(),
        ),
        "its signature is not valid: ",
    ),
    "no keyid": (
        lambda k: envelope_with(
            proof_by(k.ci), signatures=[{"sig": json.loads(proof_by(k.ci))["signatures"][0]["sig"]}]
        ),
        "no valid proof: its signature has fields other than keyid and sig",
    ),
    "payload of another type": (
        lambda k: envelope_with(proof_by(k.ci), payloadType="application/json"),
        "no valid proof: its payload is of another type: 'application/json'",
    ),
    "another field": (
        lambda k: envelope_with(proof_by(k.ci), trusted=True),
        "no valid proof: it is not an envelope: it has fields that DSSE does not have",
    ),
    "names twice": (
        lambda k: proof_by(k.ci)[:-1] + b', "payloadType": "application/vnd.in-toto+json"}',
        "no valid proof: it is not JSON: a name occurs twice in an object",
    ),
    "truncated": (lambda k: proof_by(k.ci)[:-9], "no valid proof: it is not JSON: "),
    "truncated base64": (
        lambda k: envelope_with(proof_by(k.ci), payload=json.loads(proof_by(k.ci))["payload"][:-3]),
        "no valid proof: its payload is not base64: ",
    ),
    "urlsafe base64": (
        lambda k: signature_with(proof_by(k.ci), sig="-_-_"),
        "no valid proof: its signature is not base64: ",
    ),
    "base64 with spaces": (
        lambda k: envelope_with(
            proof_by(k.ci), payload=json.loads(proof_by(k.ci))["payload"] + "\n"
        ),
        "no valid proof: its payload is not base64: ",
    ),
    "base64 of more bits": (
        lambda k: signature_with(proof_by(k.ci), sig="QUJ="),
        "no valid proof: its signature is not base64: not as RFC 4648 writes it",
    ),
    "no text as payload": (
        lambda k: envelope_with(proof_by(k.ci), payload=["e30="]),
        "no valid proof: its payload is not base64: ",
    ),
    "not UTF-8": (
        lambda _k: b'{"payload": "\xff"}',
        "no valid proof: it is not JSON: 'utf-8' codec can't decode byte 0xff",
    ),
    "huge": (
        lambda _k: b" " * (1 << 21),
        "no valid proof: it has 2097152 bytes, and a proof has at most 1048576",
    ),
    "deep": (lambda _k: b"[" * 500_000, "no valid proof: it is not JSON: "),
    "NaN": (
        lambda _k: b'{"payload": NaN}',
        "no valid proof: it is not JSON: NaN is not a number of JSON",
    ),
    "nothing": (lambda _k: b"", "no valid proof: it is not JSON: "),
}
# What a key has signed that should not have, or that is not what it says.
SIGNED: dict[str, tuple[Forge, str]] = {
    "signer in no file": (lambda k: proof_by(k.thief), NO_KEY),
    "not trusted": (
        lambda k: proof_by(k.bob, signer="bob@example.com"),
        f"proof of bob@example.com about tree 1111111: {NOT_TRUSTED}",
    ),
    "identity of another": (lambda k: proof_by(k.bob), NO_KEY),
    "identity that only looks alike": (
        lambda k: proof_by(k.ci, signer="CI@example.com"),
        f"proof of CI@example.com about tree 1111111: {NOT_TRUSTED}",
    ),
    "identity with more behind": (
        lambda k: proof_by(k.ci, signer="ci@example.com.evil"),
        f"proof of ci@example.com.evil about tree 1111111: {NOT_TRUSTED}",
    ),
    "wildcard as identity": (
        lambda k: proof_by(k.bob, signer="*@ci.example.com"),
        f"{NO_STATEMENT}: '*@ci.example.com' is not the identity",
    ),
    "two identities": (
        lambda k: proof_by(k.bob, signer="ci@example.com,bob@example.com"),
        f"{NO_STATEMENT}: 'ci@example.com,bob@example.com' is",
    ),
    "option as identity": (
        lambda k: proof_by(k.bob, signer="-fx@ci.example.com"),
        f"{NO_STATEMENT}: '-fx@ci.example.com' is not the identity",
    ),
    "no identity": (
        lambda k: proof_by(k.ci, signer=""),
        f"{NO_STATEMENT}: '' is not the identity of one signer",
    ),
    "expired key": (
        lambda k: proof_by(k.expired, signer="old@ci.example.com"),
        f"proof of old@ci.example.com about tree 1111111: {NOT_VALID}allowed signers:3: key has ex",
    ),
    "key for commits": (
        lambda k: proof_by(k.of_git, signer="git@ci.example.com"),
        f"proof of git@ci.example.com about tree 1111111: {NOT_VALID}allowed signers:4: key is",
    ),
    "revoked": (
        lambda k: proof_by(k.gone, signer="gone@ci.example.com"),
        "proof of gone@ci.example.com about tree 1111111: its signature is not valid: no key of ",
    ),
    "from the future": (
        lambda k: proof_by(k.ci, time_s=time.time() + DAY_S),
        "it is from the future: are the clocks of both machines right?",
    ),
    "too old": (
        lambda k: proof_by(k.ci, time_s=time.time() - 31 * DAY_S),
        "it is 31.0 days old, and max_age is 30.0 days",
    ),
    "signed anew": (
        lambda k: proof_by(k.ci, gates=(GATE._replace(time_s=time.time() - 40 * DAY_S),)),
        "it is 40.0 days old, and max_age is 30.0 days",
    ),
    "made by an agent": (
        lambda k: proof_by(k.ci, gates=(GATE._replace(maker="agent", time_s=time.time()),)),
        "gate `all` ran in an agent's session, and `agents` is false",
    ),
    "later version": (
        lambda k: payload_with(k.ci, b'"v": 2', b'"v": 3'),
        "no valid proof: its statement is of version 3, and not 2",
    ),
    "version from before all": (
        lambda k: payload_with(k.ci, b'"v": 2', b'"v": 0'),
        "no valid proof: its statement is of version 0, and not 2",
    ),
    "version of another type": (
        lambda k: payload_with(k.ci, b'"v": 2', b'"v": true'),
        "no valid proof: its statement is of version True, and not 2",
    ),
    "version as a fraction": (
        lambda k: payload_with(k.ci, b'"v": 2', b'"v": 1.0'),
        "no valid proof: its statement is of version 1.0, and not 2",
    ),
    "no version": (
        lambda k: payload_with(k.ci, b'"v": 2, ', b""),
        f"{NO_STATEMENT}: it has no 'v'",
    ),
    "earlier version": (
        lambda k: payload_with(k.ci, b'"v": 2', b'"v": 1'),
        "no valid proof: its statement is of version 1, and not 2",
    ),
    "field of the earlier version": (
        lambda k: payload_with(k.ci, b'"exact": true', b'"exact": true, "tool": ""'),
        "no valid proof: its payload has fields that a statement of gitgates does not have",
    ),
    "no word on whether it saw the tree": (
        lambda k: payload_with(k.ci, b'"exact": true, ', b""),
        f"{NO_STATEMENT}: it has no 'exact'",
    ),
    "a number for whether it saw the tree": (
        lambda k: payload_with(k.ci, b'"exact": true', b'"exact": 1'),
        f"{NO_STATEMENT}: 1 is neither true nor false",
    ),
    "another type of statement": (
        lambda k: payload_with(k.ci, b"Statement/v1", b"Statement/v0.1"),
        "no valid proof: its statement is of another type or version: ",
    ),
    "another predicate": (
        lambda k: payload_with(k.ci, b"test-result/v0.1", b"vsa/v1"),
        "no valid proof: its statement is of another type or version: ",
    ),
    "names twice in the payload": (
        lambda k: payload_with(k.ci, b'"result": ', b'"result": "FAILED", "result": '),
        f"{NO_STATEMENT}: a name occurs twice in an object",
    ),
    "a field that is unknown": (
        lambda k: payload_with(k.ci, b'"hook": ""', b'"hook": "", "force": true'),
        "no valid proof: its payload has fields that a statement of gitgates does not have",
    ),
    "passed and failed at once": (
        lambda k: document_with(k.ci, lambda d: d["predicate"].update(failedTests=["all"])),
        "no valid proof: its payload has fields that a statement of gitgates does not have",
    ),
    "about two trees": (
        lambda k: document_with(
            k.ci, lambda d: d["subject"].append({"name": "b", "digest": {"gitTree": "b" * 40}})
        ),
        "no valid proof: its payload has fields that a statement of gitgates does not have",
    ),
    "about nothing": (
        lambda k: document_with(k.ci, lambda d: d["subject"].clear()),
        f"{NO_STATEMENT}: it names neither a tree nor content",
    ),
    "a tree that is no id": (
        lambda k: proof_by(k.ci, tree="HEAD"),
        f"{NO_STATEMENT}: 'HEAD' is not a digest",
    ),
    "a gate twice": (
        lambda k: proof_by(k.ci, gates=(GATE, GATE)),
        f"{NO_STATEMENT}: a gate occurs in it twice",
    ),
    "no gate has run": (
        lambda k: proof_by(k.ci, gates=(GATE._replace(status="skipped"),)),
        f"{NO_STATEMENT}: none of its gates has run",
    ),
    "infinite time": (
        lambda k: payload_with(k.ci, b'"duration": 0.0', b'"duration": 1e999'),
        f"{NO_STATEMENT}: inf is not a number",
    ),
    "control characters": (
        lambda k: proof_by(k.ci, hook="pre-commit\nsigner: x"),
        f"{NO_STATEMENT}: 'pre-commit\\nsigner: x' is not text",
    ),
    "payload not UTF-8": (
        lambda k: payload_with(k.ci, b'"hook": ""', b'"hook": "\xff"'),
        f"{NO_STATEMENT}: 'utf-8' codec",
    ),
    "payload no object": (
        lambda k: envelope_of(b"[]", k.ci),
        NO_STATEMENT,
    ),
}
# A valid proof, put forward for something else.
REPLAYED: dict[str, tuple[dict[str, str], str]] = {
    "other tree": ({"gate": "all", "tree": "5" * 40}, "it is about another tree"),
    "content for a tree": ({"gate": "all", "content": KEY}, "it is about another content"),
    "other gate": ({"gate": "tests"}, "it says nothing about the gate `tests`"),
    "changed definition": (
        {"gate": "all", "definition": "5" * 64},
        "gate `all`: it had another definition",
    ),
    "other pass": ({"gate": "all", "key": "5" * 64}, "gate `all`: it is about another pass"),
}


def wrongly_refused(trust: Trust, keys: Keys, ways: dict[str, tuple[Forge, str]]) -> dict[str, str]:
    """Return the ways that are believed, or refused for another reason, and what is said."""
    said = {way: refused(trust, forge(keys)) for way, (forge, _reason) in ways.items()}
    return {way: said[way] for way in ways if not said[way].startswith(ways[way][1])}


def test_what_was_changed_is_not_believed(trust: Trust, keys: Keys) -> None:
    assert wrongly_refused(trust, keys, CHANGED) == {}


def test_what_should_not_be_signed_is_not_believed(trust: Trust, keys: Keys) -> None:
    assert wrongly_refused(trust, keys, SIGNED) == {}


def test_what_is_put_forward_for_something_else_does_not_count(trust: Trust, keys: Keys) -> None:
    proof = proof_by(keys.ci)
    for way, (wanted, reason) in REPLAYED.items():
        facts = {name: value for name, value in wanted.items() if name != "gate"}
        assert refused(trust, proof, wanted["gate"], **facts) == reason, way


def test_who_believed_another_is_not_believed_for_it(trust: Trust, keys: Keys) -> None:
    gate = GATE._replace(time_s=time.time(), origin="bob@example.com", keys=())
    said = refused(trust, proof_by(keys.ci, gates=(gate,)), "all")
    assert said == ("gate `all`: bob@example.com ran it, and only whoever ran a gate is believed")


def test_there_are_sixty_ways() -> None:
    assert len(CHANGED) + len(SIGNED) + len(REPLAYED) >= 60
