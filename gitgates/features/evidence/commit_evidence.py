"""Evidence of what gates have checked, by content: in the spool of hooks, and in git notes.

A line says how gates have ended on one tree, and what tree the paths were compared with: what was
not changed between those two was not checked by a gate that is about paths.
"""

from __future__ import annotations

import os

from gitgates.core.errors import ConfigError, GitError
from gitgates.core.lean_json import dumps, loads
from gitgates.core.record import Record
from gitgates.engine.plan import takes_paths
from gitgates.engine.ratchet import noted_lines
from gitgates.features.evidence.commit_settings import configurations
from gitgates.git.commits import changed_blobs, patch_digests, trees_of
from gitgates.git.notes import Notes, add_lines
from gitgates.git.object_store import reading_git
from gitgates.store.files import lock_file, read_state, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitgates.core.types import Gate
    from gitgates.git.commits import Blob
    from gitgates.git.repo import Repo

GATED = "gated"
ELSEWHERE = "gated on another base"
SQUASHED = "squash of gated commits"
SKIPPED = "skipped"
MISSING = "missing"
UNCHECKED = "nothing was checked"
_VERSION = 1
_NOT_RUN = ("skipped", "unmatched", "not-run", "unchecked")
_UNKNOWN = "?"  # a base that is no longer here
_MOST_AMENDS = 5  # that the same patch is looked for behind: each takes a process
_LOCK_WAIT_S = 3.0
_AT_ONCE = 100  # patches that git is asked for, and that are in memory


class CheckedTree(Record):
    """How gates have ended in one run."""

    tree: str
    base: str  # the tree that paths were compared with; empty for none
    hook: str
    config: str  # the digest of the configuration
    time: int
    gates: Mapping[str, str]  # gate → status; `unmatched`: no path matched it
    patch: str = ""  # a digest of what differs between the two trees

    def to_line(self) -> bytes:
        """Return it as a line of a note; the same evidence makes the same line."""
        fields = {**self._asdict(), "gates": dict(sorted(self.gates.items())), "v": _VERSION}
        del fields["tree"]  # which the note is about
        return dumps(dict(sorted(fields.items()))).encode("ascii")

    def has_run(self, gate: str) -> bool:
        """Return whether a gate has run, and so has let the commit pass."""
        return self.gates.get(gate, "not-run") not in _NOT_RUN

    def covers(self, gate: str) -> bool:
        """Return whether a gate has run, or had no path to run on."""
        return self.gates.get(gate) == "unmatched" or self.has_run(gate)


class CommitEvidence:
    """All evidence that is here. What hooks have recorded is moved into notes first.

    `changes`: the pairs of trees that will be asked about, in that order.
    """

    def __init__(
        self, repo: Repo, say: Callable[[str], None], changes: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._changes = list(changes)
        self._git = reading_git(repo)
        lines = _read_spool(repo)
        self._new: dict[str, list[CheckedTree]] = {}  # by tree
        for one in self._complete(lines):
            self._new.setdefault(one.tree, []).append(one)
        try:
            if lines:
                numbers = noted_lines(repo.shared_state_abs, self._new)
                texts = {
                    tree: [*(e.to_line() for e in new), *numbers.get(tree, ())]
                    for tree, new in self._new.items()
                }
                add_lines(repo, texts)
                _remove(repo, lines)  # killed before this, the same lines are added again: once
        except (GitError, OSError) as error:
            say(f"{repo.evidence_abs}: cannot be moved into git notes: {error}")
        self._notes = Notes(repo)
        self.read(one for pair in self._changes for one in pair)
        self._known: dict[str, list[CheckedTree]] = {}  # by tree
        self._patches: dict[str, list[CheckedTree]] | None = None
        self._digests: dict[tuple[str, str], str] = {}
        # By gate: what it was given, and the trees that this was in.
        self._seen: dict[str, dict[Blob, set[str]]] = {}
        self._gates: dict[str, dict[str, Gate]] = {}  # by tree, by name: as its configuration says

    def _complete(self, lines: list[bytes]) -> list[CheckedTree]:
        """Return the evidence in lines of the spool, with bases as trees, and with patches."""
        found = [one for one in map(_from_spool, lines) if one]
        trees = trees_of(self._git, (e.base for e in found if e.base))
        found = [e._replace(base=e.base and trees.get(e.base, _UNKNOWN)) for e in found]
        digests = patch_digests(self._git, [(e.base, e.tree) for e in found])
        return [e._replace(patch=digests.get((e.base, e.tree), "")) for e in found]

    def read(self, trees: Iterable[str]) -> None:
        """Read the notes of trees at once, before `of` is asked for each. Raises: GitError."""
        self._notes.read(trees)

    def of(self, tree: str) -> list[CheckedTree]:
        """Return the evidence of one tree."""
        if tree not in self._known:
            noted = [_from_note(tree, line) for line in self._notes.lines(tree)]
            self._known[tree] = [*(one for one in noted if one), *self._new.get(tree, ())]
        return self._known[tree]

    def _all(self) -> list[CheckedTree]:
        """Return the evidence of all trees."""
        trees = dict.fromkeys([*self._notes, *self._new])
        self.read(trees)
        return [e for one in trees for e in self.of(one)]

    def find(self, gate: Gate, base: str, tree: str, paths: Iterable[str] = ()) -> str:
        """Return what is known of a gate on the change from one tree to another.

        `paths`: those of the change that the gate is about.
        """
        own = self.of(tree)
        if not takes_paths(gate) and any(e.has_run(gate.name) for e in own):
            return GATED
        steps = self._steps(gate.name, tree, base)
        if steps[-1] == (base, True):
            return GATED
        for at, has_run in steps[:_MOST_AMENDS]:
            for e in self._with_patch(base, at):
                if e.covers(gate.name) and (has_run or e.has_run(gate.name)):
                    return ELSEWHERE
        if takes_paths(gate) and self._has_seen(gate, base, tree, paths):
            # A revert, for example. Files that were never together are as on another base.
            return GATED if any(e.covers(gate.name) for e in own) else ELSEWHERE
        ends = {e.gates.get(gate.name) for e in own}
        if "unchecked" in ends:
            return UNCHECKED
        return SKIPPED if "skipped" in ends else MISSING

    def _steps(self, gate: str, tree: str, base: str) -> list[tuple[str, bool]]:
        """Return the trees back from one to what its paths were compared with, and so on to `base`.

        More than one step is an amend: there, only what it changed was checked, and before it the
        rest. Each comes with whether the gate has run on the way.
        """
        steps = [(tree, False)]
        seen = set(steps)
        for at, has_run in steps:  # which grows while it is walked
            for e in self.of(at):
                step = e.base, has_run or e.has_run(gate)
                if e.covers(gate) and step not in seen:
                    seen.add(step)
                    steps.append(step)
                    if step == (base, True):
                        return steps
        return steps

    def _has_seen(self, gate: Gate, base: str, tree: str, paths: Iterable[str]) -> bool:
        """Return whether a gate that checks the same was given each of these paths as it is."""
        wanted = {os.fsencode(path) for path in paths}
        changed = changed_blobs(self._git, [(base, tree)]).get((base, tree), set())
        blobs = {blob for blob in changed if blob[0] in wanted}
        seen = self._given(gate.name)
        if not blobs or not blobs <= seen.keys():
            return False
        self._read_gates(set().union(*(seen[blob] for blob in blobs)))
        return all(any(self._is_same(gate, one) for one in seen[blob]) for blob in blobs)

    def _given(self, gate: str) -> dict[Blob, set[str]]:
        """Return what a gate was ever given, each with the trees that this was in."""
        if gate not in self._seen:
            pairs = [(e.base, e.tree) for e in self._all() if e.has_run(gate)]
            seen: dict[Blob, set[str]] = {}
            for pair, blobs in changed_blobs(self._git, pairs).items():
                for blob in blobs:
                    seen.setdefault(blob, set()).add(pair[1])
            self._seen[gate] = seen
        return self._seen[gate]

    def _read_gates(self, trees: set[str]) -> None:
        """Read the gates that the configurations in these trees have."""
        wanted = sorted(trees - self._gates.keys())
        for tree, config in zip(wanted, configurations(self._git, wanted), strict=True):
            gates = () if isinstance(config, ConfigError) else config.gates
            self._gates[tree] = {gate.name: gate for gate in gates}

    def _is_same(self, gate: Gate, tree: str) -> bool:
        """Return whether the gate of that name in another tree checks the same."""
        known = self._gates[tree].get(gate.name)
        return known is not None and _checks(known) == _checks(gate)

    def _with_patch(self, base: str, tree: str) -> list[CheckedTree]:
        """Return the evidence of the same change on any base."""
        if self._patches is None:
            self._patches = {}
            for e in self._all():
                self._patches.setdefault(e.patch, []).append(e)
        if self._patches and (base, tree) not in self._digests:
            one = base, tree
            at = self._changes.index(one) if one in self._changes else len(self._changes)
            wanted = self._changes[at : at + _AT_ONCE] or [one]
            self._digests |= {**dict.fromkeys(wanted, _UNKNOWN), **patch_digests(self._git, wanted)}
        return self._patches.get(self._digests.get((base, tree), _UNKNOWN), [])


def _checks(gate: Gate) -> tuple[object, ...]:
    """Return what makes a gate another check when it changes, whatever its name."""
    return gate.command, gate.pre_commit, gate.runner, gate.working_dir, gate.env, gate.pass_files


def _from_spool(line: bytes) -> CheckedTree | None:
    """Read a line of a hook; None for one that was torn when its writer was killed."""
    fields = os.fsdecode(line).split("\t")
    if len(fields) != len(CheckedTree._fields) or fields[0] != str(_VERSION):
        return None
    _version, time, tree, base, hook, config, ends = fields
    if not (time.isdecimal() and _is_id(tree) and (not base or _is_id(base))):
        return None
    pairs = (end.partition(":") for end in ends.split(",") if end)
    gates = {gate: status for status, _, gate in pairs}
    return CheckedTree(tree, base, hook, config, int(time), gates)


def _from_note(tree: str, line: bytes) -> CheckedTree | None:
    """Read a line of a note; None for what others have written there."""
    try:
        found = loads(line.decode("ascii"))
        if found.pop("v") != _VERSION:
            return None
        one = CheckedTree(tree=tree, **found)
        one.gates.items()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return one if all(type(text) is str for text in (one.base, one.patch)) else None


def _is_id(text: str) -> bool:
    return text.isalnum() and text.isascii()


def _read_spool(repo: Repo) -> list[bytes]:
    return (read_state(repo.evidence_abs) or b"").split(b"\n")[:-1]


def _remove(repo: Repo, lines: list[bytes]) -> None:
    """Remove lines from the spool; what was appended since they were read stays.

    Raises: OSError.
    """
    fd = lock_file(repo.evidence_abs, wait_s=_LOCK_WAIT_S, flags=os.O_RDWR)
    if fd < 0:
        raise OSError("another process holds its lock")
    try:
        left = [line + b"\n" for line in _read_spool(repo) if line not in lines]
        replace_file(repo.evidence_abs, b"".join(left))
    finally:
        os.close(fd)
