"""What is signed: how gates ended on a tree, as an in-toto statement of test results.

Annotations have what the predicate has no field for. A payload is read strictly: it is refused
unless `to_payload` would write the same fields for its statement.
Source: https://github.com/in-toto/attestation/tree/main/spec
"""

from __future__ import annotations

from gitgates.core.errors import BLOCKED, GitgatesError
from gitgates.core.lean_json import dumps, loads_strictly
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
VERSION = 2
_RUN = "gitgates"  # the resource of the run, before those of its gates
_ID_LENGTHS = (40, 64)
_SHA256_LENGTH = 64
_LONGEST = 1000  # characters of a text
_LARGEST = 1e300  # number: beyond, it would be infinite
_LATEST_S = 1e11  # since the epoch
_SHORT = 7
_NOT_IN_IDENTITY = frozenset("*?!,\"'\\#")  # ssh-keygen takes them for patterns and the like
_NOT_RUN = ("skipped", "unmatched", "not-run", "unchecked")


class RefusedError(GitgatesError):
    """Raised if a proof is not believed; the message says why."""

    exit_status = BLOCKED

    @property
    def reason(self) -> str:
        """The message alone."""
        return self.message


class GateProof(Record):
    """How a gate ended."""

    gate: str
    status: str  # as in the log of proofs
    definition: str  # sha256 of what the gate does, as it is configured
    is_exact: bool = False  # whether it saw exactly that tree, and ran on the signer's machine
    keys: tuple[str, ...] = ()  # of the pass; equal on every machine
    origin: str = ""  # the signer whose pass was believed; empty: it ran on the signer's machine
    maker: str = ""  # agent: in an agent's session; ci; empty: a person, or unknown
    time_s: float = 0.0  # since the epoch
    duration_s: float = 0.0
    numbers: Mapping[str, float] = {}  # that it measured

    @property
    def why_not(self) -> str:
        """Why nobody believes that the gate checked the tree; empty: somebody may."""
        if self.origin:
            return f"{self.origin} ran it, and only whoever ran a gate is believed"
        # Only the person there decided to let a failure through or to skip the gate.
        if self.status not in ("passed", "unmatched"):
            return f"{self.status}, not passed"
        if self.status == "passed" and not self.is_exact:
            return "it ran on files other than the commit's, or on a server"
        return ""


class Statement(Record):
    """How gates ended on a tree, or on content that is not a tree."""

    tree: str = ""
    commits: tuple[str, ...] = ()
    content: str = ""  # sha256 of what the gates could see
    hook: str = ""
    base: str = ""  # the tree that paths were compared with; empty: none
    patch: str = ""  # a digest of the difference between the two trees
    platform: str = ""
    config: str = ""  # sha256 of the configuration, if the hook let the tree be committed
    signer: str = ""  # the identity to verify the signature for
    time_s: float = 0.0  # when it was signed, since the epoch
    gates: tuple[GateProof, ...] = ()

    @property
    def has_run(self) -> bool:
        """Whether any gate ran."""
        return any(proof.status not in _NOT_RUN for proof in self.gates)

    @property
    def title(self) -> str:
        """Whose proof it is, and about what, for display."""
        about = f"tree {self.tree[:_SHORT]}" if self.tree else f"content {self.content[:_SHORT]}"
        return f"proof of {self.signer} about {about}"

    def require(self, gate: str, **wanted: str) -> GateProof:
        """Return the proof of a gate, if it is about what is wanted.

        `wanted`: the `tree`, `content`, `definition` or `key` that it must have.

        Raises: RefusedError, which says what differs.
        """
        for field in ("tree", "content"):
            if field in wanted and getattr(self, field) != wanted[field]:
                raise RefusedError(f"{self.title}: it is about another {field}")
        proof = next((proof for proof in self.gates if proof.gate == gate), None)
        if proof is None:
            raise RefusedError(f"{self.title}: it says nothing about the gate `{gate}`")
        if proof.origin:
            raise RefusedError(f"{self.title}: gate `{gate}`: {proof.why_not}")
        if "definition" in wanted and proof.definition != wanted["definition"]:
            raise RefusedError(f"{self.title}: gate `{gate}`: it had another definition")
        if "key" in wanted and wanted["key"] not in proof.keys:
            raise RefusedError(f"{self.title}: gate `{gate}`: it is about another pass")
        return proof


def to_payload(statement: Statement) -> bytes:
    """Return a statement as JSON."""
    return dumps(_document(statement)).encode("ascii")


def _document(statement: Statement) -> dict[str, Any]:
    ran = [proof for proof in statement.gates if proof.status not in _NOT_RUN]
    passed = [proof.gate for proof in ran if proof.status == "passed"]
    # The commit exists, so a gate that failed only warned.
    warned = [proof.gate for proof in ran if proof.status != "passed"]
    return {
        "_type": TYPE,
        "subject": _subject(statement),
        "predicateType": PREDICATE,
        "predicate": {
            "result": "WARNED" if warned else "PASSED",
            "configuration": [_run(statement), *map(_resource, statement.gates)],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": [],
        },
    }


def _subject(statement: Statement) -> list[dict[str, Any]]:
    commits = [
        (f"commit-{number}" if number > 1 else "commit", "gitCommit", commit)
        for number, commit in enumerate(statement.commits, 1)
    ]
    tree = [("tree", "gitTree", statement.tree)] if statement.tree else []
    content = [("content", "sha256", statement.content)] if statement.content else []
    rows = [*tree, *commits, *content]
    return [{"name": name, "digest": {kind: value}} for name, kind, value in rows]


def _run(statement: Statement) -> dict[str, Any]:
    return {
        "name": _RUN,
        # A resource must have a digest; zeros mean no configuration, as for a missing git object.
        "digest": {"sha256": statement.config or "0" * _SHA256_LENGTH},
        "annotations": {
            "v": VERSION,
            "hook": statement.hook,
            "base": statement.base,
            "patch": statement.patch,
            "platform": statement.platform,
            "signer": statement.signer,
            "time": statement.time_s,
        },
    }


def _resource(proof: GateProof) -> dict[str, Any]:
    return {
        "name": proof.gate,
        "digest": {"sha256": proof.definition},
        "annotations": {
            "status": proof.status,
            "exact": proof.is_exact,
            "keys": [*proof.keys],
            "from": proof.origin,
            "maker": proof.maker,
            "time": proof.time_s,
            "duration": proof.duration_s,
            "numbers": {**proof.numbers},
        },
    }


def read_payload(payload: bytes) -> Statement:
    """Return the statement in a payload.

    Raises: RefusedError if it is not exactly one of this version.
    """
    try:
        document = loads_strictly(payload)
        kinds = document["_type"], document["predicateType"]
        run, *resources = document["predicate"]["configuration"]
        version = run["annotations"]["v"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RefusedError(f"its payload is not a statement of gitgates: {_why(error)}") from error
    if kinds != (TYPE, PREDICATE):
        raise RefusedError(f"its statement is of another type or version: {kinds!r:.200}")
    if type(version) is not int or version != VERSION:
        what = f"its statement is of version {version!r:.20}, and not {VERSION}"
        raise RefusedError(f"{what}: use the same version of gitgates")
    try:
        statement = _statement(document["subject"], run, resources)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RefusedError(f"its payload is not a statement of gitgates: {_why(error)}") from error
    if _document(statement) != document:
        raise RefusedError("its payload has fields that a statement of gitgates does not have")
    return statement


def _statement(subject: Any, run: Any, resources: list[Any]) -> Statement:  # noqa: ANN401 - JSON
    digests: dict[str, list[str]] = {"gitTree": [], "gitCommit": [], "sha256": []}
    for entry in subject:
        ((kind, value),) = entry["digest"].items()
        digests[kind].append(_hex(value, _ID_LENGTHS))
    notes = run["annotations"]
    config = _hex(run["digest"]["sha256"])
    statement = Statement(
        tree="".join(digests["gitTree"]),
        commits=tuple(digests["gitCommit"]),
        content="".join(digests["sha256"]),
        hook=_text(notes["hook"]),
        base=_text(notes["base"]),
        patch=_text(notes["patch"]),
        platform=_text(notes["platform"]),
        config=config if config.strip("0") else "",
        signer=identity(notes["signer"]),
        time_s=_time(notes["time"]),
        gates=tuple(map(_gate, resources)),
    )
    if not (statement.tree or statement.content):
        raise ValueError("it names neither a tree nor content")
    if not statement.has_run:
        raise ValueError("none of its gates has run")
    if len({proof.gate for proof in statement.gates}) < len(statement.gates):
        raise ValueError("a gate occurs in it twice")
    return statement


def _gate(resource: Any) -> GateProof:  # noqa: ANN401 - JSON
    notes = resource["annotations"]
    if type(notes["keys"]) is not list:
        raise TypeError("the keys of a gate are not a list")
    return GateProof(
        gate=_text(resource["name"]),
        status=_text(notes["status"]),
        definition=_hex(resource["digest"]["sha256"]),
        is_exact=_flag(notes["exact"]),
        keys=tuple(map(_hex, notes["keys"])),
        origin=_text(notes["from"]),
        maker=_text(notes["maker"]),
        time_s=_time(notes["time"]),
        duration_s=_number(notes["duration"]),
        numbers={_text(name): _number(value) for name, value in notes["numbers"].items()},
    )


def identity(value: object) -> str:
    """Return an identity that `ssh-keygen` can verify. Raises: ValueError if it is not one."""
    text = _text(value)
    if not text or text.startswith("-") or any(c.isspace() or c in _NOT_IN_IDENTITY for c in text):
        raise ValueError(f"{text!r:.100} is not the identity of one signer")
    return text


def _text(value: object) -> str:
    if type(value) is not str or len(value) > _LONGEST or not (value.isprintable()):
        raise ValueError(f"{value!r:.100} is not text of one line")
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r:.100} is neither true nor false")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float) or not -_LARGEST < value < _LARGEST:  # type: ignore[operator]
        raise ValueError(f"{value!r:.100} is not a number")
    return value  # type: ignore[return-value]


def _time(value: object) -> float:
    seconds = _number(value)
    if not 0 <= seconds < _LATEST_S:
        raise ValueError(f"{value!r:.100} is not a time")
    return seconds


def _hex(value: object, lengths: tuple[int, ...] = (_SHA256_LENGTH,)) -> str:
    if type(value) is not str or len(value) not in lengths or value.strip("0123456789abcdef"):
        raise ValueError(f"{value!r:.100} is not a digest")
    return value


def _why(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error) or "too deep"
