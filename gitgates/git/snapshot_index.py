"""The index that snapshots are made with, and what it lists that the user's does not.

snapshot.index   the index, made from the user's
snapshot.facts   what it was made from; not there while it is worked on, so that a killed run
                 is seen, and it is made anew
"""

from __future__ import annotations

import marshal
import os

from gitgates.errors import GitError
from gitgates.git.index import SETTINGS, copy_index
from gitgates.git.object_store import storing_git
from gitgates.git.repo import nul_ended, nul_split
from gitgates.store.files import is_regular, open_state, remove_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.git.repo import Repo
    from gitgates.proc.call import CompletedProcess

_VERSION = 1
SUBMODULE = b"160000"
_SETTINGS = (*SETTINGS, ("core.safecrlf", "false"), ("core.fsmonitor", "false"))
_FACTS = "snapshot.facts"
_FACTS_COUNT = 6
_DIFFERENCES = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_HEAD = ("rev-parse", "--verify", "--quiet", "HEAD")
_IGNORED = ("--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin")


def flagged_paths(repo: Repo) -> list[str]:
    """Return the paths that git was told not to look at when the last snapshot was taken."""
    match _read_facts(repo):
        case (_signature, _listed, list(flagged), *_rest):
            return flagged
        case _:
            return []


def _read_facts(repo: Repo) -> tuple[Any, ...]:
    """Return what the last snapshot has noted; empty if that is not known."""
    try:
        with open(f"{repo.state_abs}/{_FACTS}", "rb", opener=open_state) as file:
            version, *facts = marshal.loads(file.read())  # noqa: S302 - our own file, mode 0600
    except (OSError, ValueError, EOFError, TypeError):
        return ()
    return tuple(facts) if version == _VERSION else ()


class SnapshotIndex:
    """Our index of one working tree. Its `git` works on it and stores in our object folder."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._users_abs = f"{repo.git_dir_abs}/index"
        self._index_abs = f"{repo.state_abs}/snapshot.index"
        self._facts_abs = f"{repo.state_abs}/{_FACTS}"
        self._signature: tuple[int, ...] = ()
        self._listed = b""  # of the user's index: flags, kinds and paths
        self.flagged: list[str] = []  # that git is told not to look at
        self.extra: set[str] = set()
        self.dropped: set[str] = set()
        self.stored: tuple[str, str, float] = ("", "", 0.0)  # last tree, HEAD then, and when
        self.has_changed = False  # against what `stored` was made from
        # What git says of the working tree, compared with what is listed.
        self.gone: list[str] = []
        self.changed: list[str] = []
        self.modules: list[str] = []  # submodules with another commit, or changes of their own
        self.untracked: list[str] = []  # and not ignored; a repository of its own ends in a slash
        self.ignored: list[str] = []  # of `extra`
        self.head = ""  # empty before the first commit
        git = storing_git(repo).with_settings(_SETTINGS)
        ours = {"GIT_INDEX_FILE": self._index_abs, "GIT_DIR": repo.git_dir_abs}
        self.git = git._replace(env={**git.env, **ours, "GIT_WORK_TREE": repo.root_abs})

    def is_usable(self) -> bool:
        """Return whether it is whole, and the user's index lists what it did."""
        facts = _read_facts(self._repo)
        if len(facts) != _FACTS_COUNT or not is_regular(self._index_abs):
            return False
        self._signature, self._listed, self.flagged, extra, dropped, self.stored = facts
        self.extra, self.dropped = set(extra), set(dropped)
        if self._signature == self._stat_signature():
            return True
        listed = self._listed
        self._read_users()
        return listed == self._listed

    def seed(self) -> None:
        """Make it anew, from the user's index."""
        self.forget()
        self.extra, self.dropped, self.stored = set(), set(), ("", "", 0.0)
        self.has_changed = True
        remove_file(f"{self._index_abs}.lock")  # of a git that was killed; we hold our own lock
        self._read_users()
        if os.path.exists(self._users_abs):
            copy_index(self._users_abs, self._index_abs)

    def begin(self) -> None:
        """Note that it is worked on."""
        remove_file(self._facts_abs)

    def end(self) -> None:
        """Note that it is whole."""
        facts = (
            *(_VERSION, self._signature, self._listed, self.flagged),
            *(sorted(self.extra), sorted(self.dropped), self.stored),
        )
        replace_file(self._facts_abs, marshal.dumps(facts), sync=False)

    def forget(self) -> None:
        """Remove it."""
        self.begin()
        remove_file(self._index_abs)

    def refresh(self) -> None:
        """Ask git everything at once that a snapshot begins with.

        Raises: GitError where something cannot be read.
        """
        asked = [(_DIFFERENCES, b""), (_UNTRACKED, b""), (_HEAD, b"")]
        if self.extra:
            asked.append((_IGNORED, nul_ended(sorted(self.extra))))
        differences, untracked, head, *ignored = self.git.ask_all(*asked)
        self._read_differences(differences)
        self._read_untracked(untracked)
        self.head = head.stdout.decode().strip()
        if ignored and ignored[0].exit_status > 1:
            raise GitError(f"git check-ignore failed: {os.fsdecode(ignored[0].stderr).strip()}")
        self.ignored = nul_split(ignored[0].stdout) if ignored else []

    def refresh_tracked(self) -> None:
        """Ask git again what is listed and is gone, has changed, and is a changed submodule."""
        self._read_differences(self.git.ask(*_DIFFERENCES))

    def refresh_untracked(self) -> None:
        """Ask git again what is not listed and not ignored."""
        self._read_untracked(self.git.ask(*_UNTRACKED))

    def _read_differences(self, done: CompletedProcess) -> None:
        if done.exit_status:
            said = os.fsdecode(done.stderr).strip() or f"exit status {done.exit_status}"
            raise GitError(f"git diff-files failed in {self.git.cwd_abs}: {said}")
        fields = done.stdout.split(b"\0")
        found: dict[str, bytes] = {}  # of a conflict, git lists more than one version
        for meta, name in zip(fields[0::2], fields[1::2], strict=False):
            path = os.fsdecode(name)
            if found.get(path, b"")[-1:] != b"D":
                found[path] = meta
        self.gone = [path for path, meta in found.items() if meta[-1:] == b"D"]
        there = {path: meta for path, meta in found.items() if meta[-1:] != b"D"}
        self.modules = [path for path, meta in there.items() if SUBMODULE in meta[1:14]]
        self.changed = [path for path, meta in there.items() if SUBMODULE not in meta[1:14]]

    def _read_untracked(self, done: CompletedProcess) -> None:
        said = os.fsdecode(done.stderr).strip()
        # An unreadable folder is only a warning to git: what is in it would be missing unseen.
        if done.exit_status or "could not open" in said:
            raise GitError(f"git cannot list what is untracked: {said}")
        self.untracked = nul_split(done.stdout)

    def returned(self) -> list[str]:
        """Return what the user tracks, had deleted, and has again."""
        root_abs = self.git.cwd_abs
        back = [path for path in sorted(self.dropped) if _is_file(root_abs, path)]
        self.dropped.difference_update(back)
        return back

    def drop(self, paths: Iterable[str]) -> None:
        """Take out what is gone."""
        paths = list(paths)
        self.dropped.update(path for path in paths if path not in self.extra)
        self.extra.difference_update(paths)
        self._update(("--force-remove",), paths)

    def add(self, paths: Iterable[str]) -> None:
        """Take in what is in the working tree now."""
        self._update(("--add", "--remove", "--replace"), paths)

    def add_extra(self, paths: list[str]) -> None:
        """Take in what is untracked."""
        self.add(paths)
        self.extra.update(path for path in paths if path not in self.dropped)
        self.dropped.difference_update(paths)

    def remove_extra(self, paths: Iterable[str]) -> None:
        """Take out what is untracked, and ignored or too large now."""
        paths = list(paths)
        self.extra.difference_update(paths)
        self._update(("--force-remove",), paths)

    def _read_users(self) -> None:
        """Read what the user's index lists, and what git is told not to look at."""
        self._signature = self._stat_signature()
        self.flagged, self._listed = [], b""
        if not self._signature:
            return
        users = self.git._replace(env={**self.git.env, "GIT_INDEX_FILE": self._users_abs})
        listed: list[bytes] = []
        for entry in users.out("ls-files", "--stage", "-v", "-z").split(b"\0")[:-1]:
            meta, _tab, name = entry.partition(b"\t")
            kind = meta[:1] + (b"m" if meta[2:8] == SUBMODULE else b"")
            listed.append(kind + name)
            # Source: git-ls-files(1), -v: lower case is assume-unchanged, S is skip-worktree.
            if kind[:1].islower() or kind[:1] == b"S":
                self.flagged.append(os.fsdecode(name))
        # Only ever compared; a digest keeps it small. No hook loads this unless it needs it.
        from hashlib import sha256

        self._listed = sha256(b"\0".join(listed)).digest()

    def _stat_signature(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._users_abs)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _update(self, options: tuple[str, ...], paths: Iterable[str]) -> None:
        if names := nul_ended(paths):
            self.begin()
            self.has_changed = True
            self.git.out("update-index", *options, "-z", "--stdin", stdin=names)


def _is_file(root_abs: str, path: str) -> bool:
    """Return whether a path is a file or link, and not one that a link in its folders leads to."""
    whole = os.path.join(root_abs, path)
    folder = os.path.dirname(whole)
    if not os.path.lexists(whole) or (os.path.isdir(whole) and not os.path.islink(whole)):
        return False
    return os.path.realpath(folder) == os.path.join(
        os.path.realpath(root_abs), os.path.dirname(path)
    ).rstrip("/")
