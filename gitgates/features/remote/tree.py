"""The files of a gate as the Remote Execution API has them: a tree of `Directory` messages.

It is made from the files on disk, which a gate would see here, not from git's objects: git may have
converted them. A message has a few fields, which are encoded here, so that no package is needed; a
test compares them with the published protos.

Source: build.bazel.remote.execution.v2, remote_execution.proto; the encoding of protocol buffers.
"""

from __future__ import annotations

import hashlib
import stat
from typing import NamedTuple

from gitgates.core.record import Record
from gitgates.features.remote.inputs import Inputs, InputsError
from gitgates.git.secret_files import secret_in
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from gitgates.engine.reuse.visible_content import FileState
    from gitgates.git.repo import Repo

# Numbers of fields, with the type: 2 for bytes, 0 for a number.
_FIRST, _SECOND, _THIRD = b"\x0a", b"\x12", b"\x1a"
_SIZE, _IS_EXECUTABLE = b"\x10", b"\x20\x01"
_HASH = b"\x0a\x40"  # with its length, which is always 64
_HASH_BYTES = 66
_LARGEST_SMALL = 0x7F
_SMALL = [bytes((number,)) for number in range(_LARGEST_SMALL + 1)]
_BY_OWNER = 0o100  # the mode bit


class Digest(NamedTuple):  # there are too many for a Record
    """What identifies a blob."""

    hash: str  # SHA-256, as hex digits
    size_bytes: int


class InputRoot(Record):
    """Everything that a gate gets: a tree of directories, and where its files are."""

    digest: Digest  # of the root's `Directory`
    directories: Mapping[Digest, bytes]  # each `Directory`, serialized
    files: Mapping[Digest, str]  # the absolute path of one file with that content
    expected: frozenset[str] = frozenset()  # files that look like secrets and may be sent
    paths: Container[str] = ()  # of all files and links
    links: tuple[str, ...] = ()  # paths of links to absolute paths, which the server must allow

    def blob(self, digest: Digest) -> bytes:
        """Return what to upload: a directory, or a file, which is checked before it is sent.

        Raises: InputsError if it has changed since, or looks like a secret; OSError.
        """
        if digest in self.directories:
            return self.directories[digest]
        path_abs = self.files[digest]
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            content = file.read()
        if digest_of(content) != digest:
            raise InputsError(f"`{path_abs}` changed before it was sent", "Run it again.")
        if path_abs not in self.expected and (what := secret_in(content)):
            raise InputsError.of_secret(path_abs, what)
        return content


def digest_of(content: bytes) -> Digest:
    """Return the digest of a blob."""
    return Digest(hash=hashlib.sha256(content).hexdigest(), size_bytes=len(content))


def input_root(
    repo: Repo,
    root_abs: str,
    patterns: tuple[str, ...],
    more: Sequence[str] = (),
    *,
    paths: Sequence[str] = (),
    not_secret: tuple[str, ...] = (),
) -> InputRoot:
    """Return the files that a gate sees in `root_abs`, the working tree or a private checkout.

    `patterns`: select from the files that git does not ignore; (): all. `more`: files and folders
    that git ignores. `paths`: more files that it does not ignore. All are relative to the root.
    `not_secret`: patterns of files that may be sent although they look like secrets.

    Raises: InputsError if something cannot be sent, or looks like a secret; GitgatesError, OSError
    if the files cannot be read.
    """
    inputs = Inputs(repo, root_abs, patterns, more, paths=paths, not_secret=not_secret)
    if inputs.problems:
        raise InputsError.of_problems(inputs.problems)
    return root_of(inputs)


def root_of(inputs: Inputs) -> InputRoot:
    """Return the tree of files, whatever problems they have."""
    tree, files = _Directories(), {}
    expected = inputs.expected
    for path, (place_abs, state) in sorted(inputs.files.items()):
        path_abs = f"{place_abs}/{path}"
        if stat.S_ISLNK(state[0][0]):
            tree.add_link(path, inputs.targets[path])
            continue
        digest = tree.add_file(path, state)
        if digest not in files or path_abs not in expected:
            files[digest] = path_abs
    directories: dict[Digest, bytes] = {}
    root = tree.write("", directories)
    return InputRoot(
        digest=root,
        directories=directories,
        files=files,
        expected=frozenset(expected),
        paths=inputs.files,
        links=tuple(inputs.absolute_links),
    )


class _Directories:
    """Directories with the nodes in them, serialized, in order of their names."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[list[bytes]]] = {"": [[], []]}  # folder → files, links
        self._folders: dict[str, list[str]] = {"": []}  # folder → names of its folders

    def add_file(self, path: str, state: FileState) -> Digest:
        (mode, size, *_times), _identity, sha256 = state
        digest = Digest(sha256.hex(), size)
        folder, _slash, name = path.rpartition("/")
        node = _text(_FIRST, name) + _digest(digest)
        if mode & _BY_OWNER:
            node += _IS_EXECUTABLE
        nodes = self._nodes.get(folder) or self._new(folder)
        nodes[0].append(_field(_FIRST, node))
        return digest

    def add_link(self, path: str, target: str) -> None:
        folder, _slash, name = path.rpartition("/")
        node = _text(_FIRST, name) + _text(_SECOND, target)
        nodes = self._nodes.get(folder) or self._new(folder)
        nodes[1].append(_field(_THIRD, node))

    def write(self, folder: str, directories: dict[Digest, bytes]) -> Digest:
        """Add a folder and everything below it to `directories`; return its digest."""
        files, links = self._nodes[folder]
        nodes = []
        for name in sorted(self._folders[folder]):
            below = self.write(f"{folder}/{name}" if folder else name, directories)
            nodes.append(_field(_SECOND, _text(_FIRST, name) + _digest(below)))
        content = b"".join((*files, *nodes, *links))
        digest = digest_of(content)
        directories[digest] = content
        return digest

    def _new(self, folder: str) -> list[list[bytes]]:
        above, _slash, name = folder.rpartition("/")
        if above not in self._nodes:
            self._new(above)
        self._folders[above].append(name)
        self._folders[folder] = []
        nodes: list[list[bytes]] = [[], []]
        self._nodes[folder] = nodes
        return nodes


def _digest(digest: Digest) -> bytes:
    """Return the field of a node with a digest."""
    hashed, size = digest
    number = _SIZE + _number(size) if size else b""
    return b"%b%c%b%b%b" % (_SECOND, _HASH_BYTES + len(number), _HASH, hashed.encode(), number)


def _text(tag: bytes, text: str) -> bytes:
    return _field(tag, text.encode())


def _field(tag: bytes, content: bytes) -> bytes:
    length = len(content)
    return tag + (_SMALL[length] if length <= _LARGEST_SMALL else _number(length)) + content


def _number(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; the last has no high bit."""
    groups = []
    while number > _LARGEST_SMALL:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))
