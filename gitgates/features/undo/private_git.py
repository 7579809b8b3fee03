"""A git directory of our own, in which git keeps files of worktrees as raw bytes.

Its attributes switch off every conversion, for line endings and filters too. It is no repository of
the user's: `git gc` there does not reach it, and no push publishes it. Files that the commit has
which was checked out first are not copied: they are in the user's repository.

undo/git/            objects, settings, attributes; for all worktrees
undo/packs/NAME.pack objects that only an index or a stash of the user's refers to
undo.index           of one worktree, in its state folder: its files, and what `lstat` said
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitError, StateError
from gitgates.engine.command import without_git
from gitgates.git.object_store import quoted
from gitgates.git.repo import Git, nul_split
from gitgates.store.files import make_folder, read_state, remove_file, remove_tree, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Repo

_ALTERNATES = "GIT_ALTERNATE_OBJECT_DIRECTORIES"
_RAW = b"* -text -eol -filter -ident -working-tree-encoding\n"  # above any .gitattributes
# Of the user's settings, those that say which files there are, and what git can tell of them.
_USED = r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|excludesfile)$"
_FIXED = """\
	bare = false
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedcache = false
	trustctime = true
	checkstat = default
	ignorestat = false
	splitindex = false
"""
YOUNG_S = 3600.0  # so old is no object of a point that is being taken

SUBMODULE = "160000"  # the mode of one in a tree


class PrivateGit:
    """The git directory, for one worktree."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self.folder_abs = f"{repo.shared_state_abs}/undo"
        self.git_dir_abs = f"{self.folder_abs}/git"
        self.index_abs = f"{repo.state_abs}/undo.index"
        self._objects_abs = f"{self.git_dir_abs}/objects"

    @property
    def storing(self) -> Git:
        """Git that has its own objects only: whatever it adds is stored here as well."""
        env = {**without_git(self._repo.env), "GIT_INDEX_FILE": self.index_abs}
        env |= {"GIT_DIR": self.git_dir_abs, "GIT_WORK_TREE": self._repo.root_abs}
        return Git(cwd_abs=self._repo.root_abs, env=env)

    @property
    def reading(self) -> Git:
        """Git that has the objects of the user's repository, too."""
        users = quoted(f"{self._repo.common_dir_abs}/objects")
        git = self.storing
        # It needs no index: that of the worktree may be damaged, and is then made again.
        no_index = {"GIT_INDEX_FILE": f"{self.git_dir_abs}/index"}
        return git._replace(env={**git.env, **no_index, _ALTERNATES: users})

    def prepare(self) -> bool:
        """Make the directory; take over the settings, and return whether the user's have changed.

        Raises: OSError, GitError.
        """
        if not os.path.isdir(self._objects_abs):
            self._make()
        signature = self._signature()
        config_abs = f"{self.git_dir_abs}/config"
        if (read_state(config_abs) or b"").startswith(signature):
            return False
        excluded = read_state(f"{self._repo.common_dir_abs}/info/exclude") or b""
        replace_file(f"{self.git_dir_abs}/info/exclude", excluded, sync=False)
        replace_file(config_abs, signature + self._settings(), sync=False)
        return True

    def _make(self) -> None:
        new_abs = f"{self.git_dir_abs}.{os.getpid()}-{time.time_ns()}"
        for name in ("objects", "refs", "info"):
            make_folder(f"{new_abs}/{name}")
        for name, content in (("HEAD", b"ref: refs/heads/none\n"), ("info/attributes", _RAW)):
            replace_file(f"{new_abs}/{name}", content, sync=False)
        try:
            os.rename(new_abs, self.git_dir_abs)
        except OSError:  # another process has made it
            remove_tree(new_abs)
            if not os.path.isdir(self._objects_abs):
                raise

    def _signature(self) -> bytes:
        facts = []
        for path_abs in (
            f"{self._repo.common_dir_abs}/config",
            f"{self._repo.git_dir_abs}/config.worktree",
            f"{self._repo.common_dir_abs}/info/exclude",
        ):
            try:
                now = os.stat(path_abs)
            except OSError:
                facts.append("-")
            else:
                facts.append(f"{now.st_ino} {now.st_size} {now.st_mtime_ns} {now.st_ctime_ns}")
        return f"# {', '.join(facts)}\n".encode()

    def _settings(self) -> bytes:
        listed = self._repo.git.ask("config", "--null", "--get-regexp", _USED)
        lines = ""
        for entry in nul_split(listed.stdout):
            key, _, value = entry.partition("\n")
            lines += f"\t{key.removeprefix('core.')} = {quoted(value)}\n"
        algorithm = self._repo.object_format
        head = f"[core]\n\trepositoryformatversion = {int(algorithm != 'sha1')}\n"
        tail = "" if algorithm == "sha1" else f"[extensions]\n\tobjectformat = {algorithm}\n"
        return os.fsencode(f"{head}{lines}{_FIXED}{tail}")

    # Objects

    def write_blob(self, content: bytes) -> str:
        """Store bytes; return their id. Raises: OSError."""
        import hashlib  # a look at the files needs neither
        import zlib

        header = b"blob %d\0" % len(content)
        object_id = hashlib.new(
            self._repo.object_format, header + content, usedforsecurity=False
        ).hexdigest()
        path_abs = self._object_abs(object_id)
        try:
            os.utime(path_abs)  # or it may be swept before a state refers to it
        except FileNotFoundError:
            make_folder(os.path.dirname(path_abs))
            replace_file(path_abs, zlib.compress(header + content, 1), mode=0o400, sync=False)
        return object_id

    def has(self, object_id: str) -> bool:
        """Return whether an object is here, and not only in the repository of the user."""
        return os.path.exists(self._object_abs(object_id))

    def _object_abs(self, object_id: str) -> str:
        return f"{self._objects_abs}/{object_id[:2]}/{object_id[2:]}"

    def read_blob(self, object_id: str) -> bytes:
        """Return the bytes of an object. Raises: StateError where it is missing or damaged."""
        import zlib  # a look at the files needs none

        try:
            with open(self._object_abs(object_id), "rb") as file:
                header, _, content = zlib.decompress(file.read()).partition(b"\0")
        except (OSError, zlib.error):
            header, content = b"", b""
        if header == b"blob %d" % len(content):
            return content
        got = self.reading.ask("cat-file", "blob", object_id)
        if got.exit_status:
            raise StateError(
                f"the object {object_id} of a save point is missing or damaged",
                f"Other points may be whole. They are in {self.folder_abs}",
            )
        return got.stdout

    # Packs of objects that the user's repository may lose

    def write_pack(self, name: str, ids: Iterable[str]) -> None:
        """Copy objects of the user's repository to a pack. Raises: GitError, OSError."""
        path_abs = self._pack_abs(name)
        make_folder(os.path.dirname(path_abs))
        lines = "".join(f"{object_id}\n" for object_id in ids).encode()
        pack = self._repo.git.out("pack-objects", "--stdout", "-q", stdin=lines)
        replace_file(path_abs, pack, sync=False)

    def has_pack(self, name: str) -> bool:
        """Return whether there is a pack of this name."""
        return os.path.exists(self._pack_abs(name))

    def unpack(self, name: str) -> None:
        """Give the objects of a pack back to the user's repository.

        Raises: StateError where it is missing or damaged.
        """
        pack = read_state(self._pack_abs(name))
        if pack is None or self._repo.git.ask("unpack-objects", "-q", stdin=pack).exit_status:
            raise StateError(f"{self._pack_abs(name)}: is missing or damaged")

    def _pack_abs(self, name: str) -> str:
        return f"{self.folder_abs}/packs/{name}.pack"

    # Pruning

    def size(self) -> int:
        """Return how many bytes the objects and packs take on the disk."""
        return sum(entry.stat().st_blocks * 512 for entry in self._files())

    def sweep(self, roots: Iterable[str], packs: Iterable[str], now_s: float) -> None:
        """Remove the objects that no root needs, and the packs that are not named."""
        stdin = "".join(f"{root}\n" for root in roots).encode()
        ask = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin")
        listed = self.reading.ask(*ask, stdin=stdin)
        if listed.exit_status:
            raise GitError(f"git rev-list failed in {self.git_dir_abs}: {listed.stderr!r}")
        kept = {*os.fsdecode(listed.stdout).split(), *(f"{name}.pack" for name in packs)}
        for entry in self._files():
            folder, name = os.path.basename(os.path.dirname(entry.path)), entry.name
            is_kept = name in kept or folder + name in kept
            if not is_kept and entry.stat().st_mtime < now_s - YOUNG_S:
                remove_file(entry.path)

    def _files(self) -> Iterator[os.DirEntry[str]]:
        folders = [f"{self.folder_abs}/packs"]
        try:
            folders += [entry.path for entry in os.scandir(self._objects_abs)]
        except OSError:
            return
        for folder_abs in folders:
            try:
                yield from list(os.scandir(folder_abs))
            except OSError:
                continue


def not_taken(private: PrivateGit, error: OSError) -> StateError:
    """Return the error for a save point that cannot be stored."""
    return StateError(
        f"{error.filename or private.folder_abs}: cannot take a save point: {error.strerror}",
        "Free some disk space, or make the folder writable.",
    )
