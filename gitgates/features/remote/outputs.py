"""Bring back what a gate wrote on a server: the files and folders in its `outputs`.

Only what git ignores is written here, such as reports, and nothing through a link: a server must
not be able to change what is committed. Links among the outputs are left out.
"""

from __future__ import annotations

import os

from gitgates.core.clean import visible_line
from gitgates.features.remote import protos
from gitgates.features.remote.connection import ServerError
from gitgates.features.remote.tree import digest_of
from gitgates.store.files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from gitgates.features.remote.storage import Storage
    from gitgates.git.repo import Repo

_MOST_BYTES = 256 << 20
_MOST_TREE = 16 << 20  # bytes that describe a folder
_MOST_FILES = 100_000


class Outputs:
    """The outputs of one gate."""

    def __init__(self, storage: Storage, folder: str, names: tuple[str, ...]) -> None:
        """Look for `names`, the gate's `outputs`, in `folder`, the checkout of the action."""
        self._storage = storage
        self._names = {f"{folder}/{name.strip('/')}": name.strip("/") for name in names}
        self._files: dict[str, Message] = {}  # path → FileNode or OutputFile

    def write(self, result: Message, repo: Repo, root_abs: str, say: Callable[[str], None]) -> None:
        """Write a result's outputs below `root_abs`.

        Raises: ServerError if the server does not have their content, or a name is invalid.
        """
        for file in result.output_files:
            if file.path in self._names:
                self._files[self._names[file.path]] = file
        for folder in result.output_directories:
            if folder.path in self._names:
                self._add_tree(self._names[folder.path], folder.tree_digest)
        size = sum(file.digest.size_bytes for file in self._files.values())
        if size > _MOST_BYTES:
            raise ServerError(
                f"its outputs have {size >> 20} MiB, more than the limit of {_MOST_BYTES >> 20}"
            )
        places = {path: _place_of(path, root_abs) for path in self._files}
        ignored = {*repo.git.ignored(path for path, what in places.items() if not what)}
        for path, file in self._files.items():
            if places[path]:
                why = places[path]
            elif path not in ignored:
                why = "git does not ignore it"
            else:
                why = self._written(file, f"{root_abs}/{path}")
            if why:
                say(f"`{visible_line(path)}` of `outputs` is not brought back: {why}")

    def _written(self, file: Message, path_abs: str) -> str:
        """Write one output; return why it could not be written, or nothing."""
        content = self._storage.read(file.digest, _MOST_BYTES)
        try:
            os.makedirs(os.path.dirname(path_abs), exist_ok=True)
            replace_file(path_abs, content, mode=0o755 if file.is_executable else None, sync=False)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _add_tree(self, path: str, digest: Message) -> None:
        if digest.size_bytes > _MOST_TREE:
            raise ServerError(f"`{visible_line(path)}` of `outputs` has too many files")
        tree = protos.message("Tree").FromString(self._storage.read(digest, _MOST_TREE))
        children = {digest_of(protos.serialized(child)).hash: child for child in tree.children}
        waiting, seen = [(path, tree.root)], 0
        while waiting:
            folder, directory = waiting.pop()
            seen += 1 + len(directory.files)
            if seen > _MOST_FILES:  # the same folder may appear many times
                raise ServerError(f"`{visible_line(path)}` of `outputs` has too many files")
            for file in directory.files:
                self._files[f"{folder}/{_name(file.name)}"] = file
            for node in directory.directories:
                if node.digest.hash not in children:
                    raise ServerError("the server describes a folder of `outputs` incompletely")
                waiting.append((f"{folder}/{_name(node.name)}", children[node.digest.hash]))


def _place_of(path: str, root_abs: str) -> str:
    """Return what is wrong with the place of an output, or nothing."""
    path_abs, folder = f"{root_abs}/{path}", os.path.dirname(path)
    expected = os.path.join(os.path.realpath(root_abs), folder)
    if os.path.realpath(f"{root_abs}/{folder}") != os.path.normpath(expected):
        return "a folder above it is a link"
    while folder:
        if os.path.isfile(f"{root_abs}/{folder}/.git"):  # `git check-ignore` knows nothing about it
            return f"`{visible_line(folder)}` is a submodule"
        folder = os.path.dirname(folder)
    if os.path.islink(path_abs) or (os.path.exists(path_abs) and not os.path.isfile(path_abs)):
        return "something other than a file is in its place"
    return ""


def _name(name: str) -> str:
    if name.lower() in ("", ".", "..", ".git") or "/" in name or "\0" in name:
        raise ServerError(f"an output has the invalid name `{visible_line(name)}`")
    return name
