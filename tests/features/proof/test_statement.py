"""The formats of a proof, by the published definitions and by other programs."""

from __future__ import annotations

import json
import time

import pytest
from conftest import Repo
from google.protobuf.json_format import Parse
from hypothesis import given
from hypothesis import strategies as st
from in_toto_attestation.predicates.test_result.v0.test_result_pb2 import TestResult as Result
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor as Descriptor
from in_toto_attestation.v1.statement import Statement as Validator
from proof_support import CI, GATE, KEY, TREE, make_key, proof_by, statement
from securesystemslib.dsse import Envelope as Dsse

from gitgates.features.proof.envelope import Envelope, read_envelope
from gitgates.features.proof.statement import Statement, read_payload, to_payload

STATEMENT = statement(
    tree=TREE,
    commits=("a" * 40, "b" * 40),
    content="c" * 64,
    hook="pre-commit",
    base="d" * 40,
    patch="e" * 64,
    platform="Linux x86_64",
    config="f" * 64,
    gates=(
        GATE._replace(numbers={"coverage": 91.5}, maker="ci"),
        GATE._replace(gate="lint", status="failed", duration_s=0.25),
        GATE._replace(gate="types", status="skipped", is_exact=False, keys=()),
        GATE._replace(gate="tests", origin="bob@example.com"),
    ),
)


def test_a_statement_is_one_by_the_published_definitions() -> None:
    payload = to_payload(STATEMENT).decode()
    published = Parse(payload, statement_pb2.Statement(), ignore_unknown_fields=False)
    validator = Validator.copy_from_pb(published)
    validator.validate()
    assert {s.name: dict(s.digest) for s in published.subject} == {
        "tree": {"gitTree": TREE},
        "commit": {"gitCommit": "a" * 40},
        "commit-2": {"gitCommit": "b" * 40},
        "content": {"sha256": "c" * 64},
    }
    predicate = json.dumps(json.loads(payload)["predicate"])
    result = Parse(predicate, Result(), ignore_unknown_fields=False)
    assert result.result == "WARNED"
    assert [*result.passed_tests] == ["all", "tests"]
    assert [*result.warned_tests] == ["lint"]
    for resource in result.configuration:
        Descriptor.copy_from_pb(resource).validate()
    assert [resource.name for resource in result.configuration] == [
        *("gitgates", "all", "lint", "types", "tests"),
    ]


def test_what_is_read_is_what_was_written() -> None:
    assert read_payload(to_payload(STATEMENT)) == STATEMENT
    content = Statement(content=KEY, signer=CI, time_s=time.time(), gates=(GATE,))
    assert read_payload(to_payload(content)) == content


@given(st.text(), st.binary(min_size=1))
def test_an_envelope_is_read_as_it_was_written(keyid: str, payload: bytes) -> None:
    armor = b"-----BEGIN SSH SIGNATURE-----\n"
    envelope = Envelope(payload, armor + payload, keyid)
    assert read_envelope(envelope.to_line()) == envelope


def test_an_envelope_is_one_for_securesystemslib(repo: Repo) -> None:
    line = proof_by(make_key(repo.path.parent / "key"))
    envelope = read_envelope(line)
    theirs = Dsse.from_dict(json.loads(line))
    assert theirs.pae() == envelope.signed
    assert theirs.payload == envelope.payload
    (signature,) = theirs.signatures.values()
    assert bytes.fromhex(signature.signature) == envelope.signature
    assert read_envelope(json.dumps(theirs.to_dict()).encode()) == envelope


@pytest.mark.parametrize("seconds", [-1, 1e12])
def test_a_time_that_no_clock_shows_is_refused(seconds: float) -> None:
    with pytest.raises(Exception, match="is not a time"):
        read_payload(to_payload(statement(time_s=seconds)))
