"""The tree that a commit of a working tree would have: with what git stores for each file.

Git converts line ends, `$Id$` and encodings, and runs filters, by attributes and settings, and
keeps what a sparse checkout leaves out. Otherwise, a raw tree is a commit's tree.

    files.stored   the last such tree, and path → object, if that is not the raw one
    files.plain    the last tree of which git converts nothing
"""

from __future__ import annotations

import os
import stat

from gitgates.files.facts import LookFacts, identity
from gitgates.files.index import Index
from gitgates.files.look import NO_DEADLINE, Locked, look
from gitgates.files.memory import Memory, Storing
from gitgates.files.rules import attribute_files, config_files
from gitgates.git.index import copy_index, update_index
from gitgates.git.repo import nul_ended
from gitgates.store.files import read_cached, remove_file, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.files.changes import Changes
    from gitgates.files.look import Look
    from gitgates.git.repo import Repo

_ATTRIBUTES = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")
_VERSION = 3
_SETTINGS = r"^core\.(autocrlf|attributesfile|sparsecheckout)$"
_OFF = (b"unspecified", b"unset")


def look_as_stored(
    repo: Repo, tree_look: Look | None = None, *, deadline_s: float = NO_DEADLINE
) -> Look:
    """Look at the working tree; the tree is the one that a commit of all of it would have.

    It can be read for a month after the last such look, by `object_store.reading_git`, too.
    `tree_look`: a look that was just taken, so that none is needed.

    Raises: as `look` and `committed_tree`.
    """
    if tree_look is None:
        tree_look = look(repo, None, deadline_s=deadline_s)
    tree, memory = committed_tree(repo, tree_look, deadline_s=deadline_s), Memory(repo)
    with Storing(memory):
        memory.keep_tree(tree)
    return tree_look._replace(tree=tree)


def committed_tree(repo: Repo, tree_look: Look, *, deadline_s: float = NO_DEADLINE) -> str:
    """Return the tree that a commit of all these files would have.

    `tree_look` is the last look at the working tree. If git converts nothing, it is the tree of
    the look; of files that git converts, it has what `git add` would store. In a clean checkout, it
    is the tree of the commit, if that was made by the attributes and settings of now.

    Raises: as `look`, and GitError if a filter that is required is missing.
    """
    memory = Memory(repo)
    with Storing(memory):
        if not _converts(repo, memory, tree_look.tree):
            return tree_look.tree
    with Locked(memory, deadline_s):
        return _Stored(memory, tree_look, deadline_s).tree()


def _converts(repo: Repo, memory: Memory, tree: str) -> bool:
    """Return whether git may store other bytes than the files have. Raises: OSError."""
    if any(map(os.path.exists, attribute_files(repo))):
        return True
    cache_abs, config = f"{repo.state_abs}/files.plain", tuple(map(identity, config_files(repo)))
    cached, git = read_cached(cache_abs), memory.reading
    was = cached[1] if isinstance(cached, tuple) and cached[:1] == (config,) else ""
    if was == tree:
        return False
    names = git.ask("diff-tree", "-r", "-z", "--name-only", was, tree) if was else None
    if names is None or names.exit_status:
        if repo.git.ask("config", "--get-regexp", _SETTINGS).stdout.strip():
            return True
        names = git.ask("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    if b"/.gitattributes\0" in b"/" + names.stdout.replace(b"\0", b"\0/"):
        return True
    replace_cached(cache_abs, (config, tree), sync=False)
    return False


class _Stored:
    """What git stores for one tree's files."""

    def __init__(self, memory: Memory, tree_look: Look, until_s: float) -> None:
        self._memory = memory
        self._repo = memory.repo
        self._tree = tree_look.tree
        facts = LookFacts(f"{memory.repo.state_abs}/files.facts")
        self._index = Index(memory, facts.settings, until_s)
        self._cache_abs = f"{memory.repo.state_abs}/files.stored"

    def tree(self) -> str:
        """Return the tree. Raises: GitError, TimeOver, OSError."""
        rules = self._rules()
        cached = read_cached(self._cache_abs)
        is_known = isinstance(cached, tuple) and cached[:2] == (_VERSION, rules)
        was, stored, result = cached[2:] if is_known else ("", {}, "")
        if was == self._tree:
            return str(result)
        changed = self._changed(was)
        if any(path.rpartition("/")[2] == ".gitattributes" for path in changed) and was:
            was, stored, changed = "", {}, self._changed("")
        stored = {path: entry for path, entry in stored.items() if path not in changed}
        files = {
            path: version
            for path, (_before, version) in changed.items()
            if version and stat.S_ISREG(version.mode)
        }
        converted = self._converted(list(files))
        ids = self._add(converted) if converted else {}
        for path in converted:
            mode, raw = files[path]
            if ids[path] != raw:
                stored[path] = f"{mode:o} {ids[path]}"
        entries = {**self._sparse_entries(), **stored}
        result = self._index.replaced(entries) if entries else self._tree
        # What has changed since the look is not what was looked at.
        if not (converted and {*self._index.differences().changed} & {*converted}):
            replace_cached(
                self._cache_abs, (_VERSION, rules, self._tree, stored, result), sync=False
            )
        return result

    def _sparse_entries(self) -> dict[str, str]:
        """Return the entries of files that a sparse checkout has left out: a commit keeps them."""
        ask = ("config", "--type=bool", "--get", "core.sparseCheckout")
        if self._repo.git.ask(*ask).stdout.strip() != b"true":
            return {}
        return {
            path: f"{mode} {blob}"
            for tag, mode, blob, path in self._entries()
            if tag == "S" and not os.path.lexists(f"{self._repo.root_abs}/{path}")
        }

    def _changed(self, was: str) -> Changes:
        """Return path → change for each file that differs from a tree; "": for all."""
        from gitgates.files.changes import RAW, read_changes  # in many repositories, nothing is

        before = was or self._memory.write_tree([])
        return read_changes(self._memory.reading.out(*RAW, before, self._tree))

    def _converted(self, paths: list[str]) -> list[str]:
        """Return the files that git may convert."""
        git = self._memory.users_git()
        autocrlf = git.ask("config", "core.autocrlf").stdout.strip().lower()
        if autocrlf in {b"true", b"input"}:
            return paths
        ask = ("check-attr", "-z", "--stdin", *_ATTRIBUTES)
        fields = git.out(*ask, stdin=nul_ended(paths)).split(b"\0")
        names = [
            os.fsdecode(name)
            for name, value in zip(fields[::3], fields[2::3], strict=False)
            if value not in _OFF
        ]
        return list(dict.fromkeys(names))

    def _rules(self) -> tuple[Any, ...]:
        """Return what else decides what is stored: files, settings of filters and line ends."""
        ask = ("config", "--null", "--get-regexp", r"^(filter\.|core\.(autocrlf|eol|attributes))")
        files = (*attribute_files(self._repo), f"{self._repo.git_dir_abs}/index")
        places = tuple(map(identity, files))
        return self._memory.identity(), places, self._repo.git.ask(*ask).stdout

    def _add(self, paths: list[str]) -> dict[str, str]:
        """Return path → object that `git add` would store of files, in a copy of the user's index.

        That index counts: line ends that are in it already are not converted, and what is as it
        says is not read. Raises: GitError.
        """
        users_abs = f"{self._repo.git_dir_abs}/index"
        copy_abs = f"{self._repo.state_abs}/files.index.{os.getpid()}"
        git = self._memory.users_git(copy_abs).with_settings((("core.safecrlf", "false"),))
        try:
            if os.path.exists(users_abs):
                copy_index(users_abs, copy_abs)
            # Flagged ones: git was told not to look.
            flagged = {path for tag, _mode, _blob, path in self._entries() if tag != "H"}
            update_index(git, flagged & set(paths), "--force-remove")
            update_index(git, paths, "--add", "--replace")
            entries = {path: blob for _tag, _mode, blob, path in self._entries(copy_abs)}
        finally:
            remove_file(copy_abs)
        return {path: entries[path] for path in paths}

    def _entries(self, index_abs: str = "") -> list[tuple[str, str, str, str]]:
        """Return tag, mode, object and path of the entries of the user's index, or of a copy."""
        lines = self._memory.users_git(index_abs).names("ls-files", "-z", "-v", "--stage")
        fields = (entry.replace("\t", " ", 1).split(" ", 4) for entry in lines)
        return [(tag, mode, blob, path) for tag, mode, blob, _stage, path in fields]
