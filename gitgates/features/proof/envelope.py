"""The envelope of a signed statement: DSSE, with one signature by ssh-keygen.

The signature is over the bytes of the payload as they are: nothing is serialized to verify it.
Source: https://github.com/secure-systems-lab/dsse/blob/master/envelope.md, protocol.md
"""

from __future__ import annotations

import binascii

from gitgates.core.lean_json import dumps, loads_strictly
from gitgates.core.record import Record
from gitgates.features.proof.statement import RefusedError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST = 1 << 20  # bytes
ARMOR = b"-----BEGIN SSH SIGNATURE-----\n"
_FIELDS = {"payload", "payloadType", "signatures"}


class Envelope(Record):
    """A payload, and ssh-keygen's signature over it."""

    payload: bytes
    signature: bytes  # armored
    keyid: str  # its key's fingerprint, on which nothing depends

    @property
    def signed(self) -> bytes:
        """The signed bytes: DSSE's pre-authentication encoding."""
        kind = PAYLOAD_TYPE.encode()
        return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(self.payload), self.payload)

    def to_line(self) -> bytes:
        """Return the envelope as a line of JSON, without a newline."""
        document = {
            "payload": _base64(self.payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": self.keyid, "sig": _base64(self.signature)}],
        }
        return dumps(document).encode("ascii")


def read_envelope(raw: bytes) -> Envelope:
    """Return the envelope in some bytes. Raises: RefusedError if it is not one of ours."""
    if len(raw) > LARGEST:
        raise RefusedError(f"it has {len(raw)} bytes, and a proof has at most {LARGEST}")
    try:
        document = loads_strictly(raw)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"it is not JSON: {error}") from error
    if type(document) is not dict or document.keys() != _FIELDS:
        raise RefusedError("it is not an envelope: it has fields that DSSE does not have")
    if document["payloadType"] != PAYLOAD_TYPE:
        raise RefusedError(f"its payload is of another type: {document['payloadType']!r:.100}")
    signatures = document["signatures"]
    if type(signatures) is not list or len(signatures) != 1:
        count = len(signatures) if type(signatures) is list else "no list of"
        raise RefusedError(f"it has {count} signatures, expected one")
    (signature,) = signatures
    if type(signature) is not dict or signature.keys() != {"keyid", "sig"}:
        raise RefusedError("its signature has fields other than keyid and sig")
    if type(signature["keyid"]) is not str:
        raise RefusedError("its keyid is not a string")
    armored = _bytes("signature", signature["sig"])
    if not armored.startswith(ARMOR):
        raise RefusedError("its signature was not made by ssh-keygen")
    return Envelope(_bytes("payload", document["payload"]), armored, signature["keyid"])


def _base64(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).decode("ascii")


def _bytes(name: str, text: object) -> bytes:
    """Decode base64, if it is written as we write it, so that equal bytes have one text."""
    try:
        content = binascii.a2b_base64(text, strict_mode=True)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise RefusedError(f"its {name} is not base64: {error}") from error
    if _base64(content) != text:
        raise RefusedError(f"its {name} is not base64: not as RFC 4648 writes it")
    return content
