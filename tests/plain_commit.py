"""`git add . && git commit -qm MESSAGE` without a process, where nothing is special about it.

It writes what git writes: objects, the index with all that it knows of files and folders, the
branch and the reflogs. Whatever might change that is left to git: settings, hooks, attributes,
ignored files, variables, other programs, an operation in progress.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_WHO = b"Test <test@example.invalid>"
_KNOWN = {  # what git has in its folder while nothing is under way
    *("HEAD", "config", "description", "hooks", "info", "branches", "objects", "refs", "logs"),
    *("index", "COMMIT_EDITMSG", "gitgates"),
}
_SPECIAL = {b".git", b".gitignore", b".gitattributes", b".gitmodules"}
_OTHER_HOOKS = {  # that no commit calls
    *("pre-push", "pre-merge-commit", "post-merge", "post-checkout", "post-rewrite"),
    *("pre-rebase", "applypatch-msg", "pre-applypatch", "post-applypatch"),
}
_CHECKS = {"pre-commit", "commit-msg"}
_VARIABLES = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_EDITOR"}
_LINE = r"[^\s#]([^\n]*\S)?"
_MESSAGE = re.compile(rf"{_LINE}(\n(\n{_LINE})+)?")  # which git takes as it is
_GIT = None if os.path.exists("/etc/gitattributes") else shutil.which("git")
_ENTRY = struct.Struct("!10L20sH")
_LONGEST_NAME = 0xFFF
_LOW = 0xFFFF_FFFF
_TICK_S = 0.001
_MOST_TICKS = 20


class _File(NamedTuple):
    path: bytes
    status: os.stat_result
    mode: int  # as git has it
    content: bytes


class _Tree(NamedTuple):
    id: bytes
    cached: bytes  # it and all below, as the index has them


class _NotPlainError(Exception):
    pass


def commit(
    root: Path, message: str, config: bytes, settings: bytes, *, no_verify: bool = False
) -> bool:
    """Commit all files below `root`; False, and nothing done, where that is for git.

    `config` and `settings`: what stands in the files of a repository and of a user without others.
    """
    git = root / ".git"
    try:
        _require_plain(git, config, settings)
        if not (_OTHER_HOOKS | (_CHECKS if no_verify else set())).issuperset(
            os.listdir(git / "hooks")
        ):
            return False
        head = _branch(git)
        parent = _read_parent(git, head)
        files = sorted(_files(os.fsencode(root), b""))
        old_tree = _tree_of(git, parent)
    except (_NotPlainError, KeyError, OSError):  # without a home: before a test begins
        return False
    if not files or not _MESSAGE.fullmatch(message):
        return False
    ids = [_store(git, b"blob", file.content) for file in files]
    tree = _write_tree(git, files, ids, b"")
    if tree.id.hex() == old_tree:
        return False
    _write_index(git, files, ids, tree)
    _write_commit(git, head, parent, tree, os.fsencode(message))
    return True


# Whether it is plain.


def _require_plain(git: Path, config: bytes, settings: bytes) -> None:
    variables = {name for name in os.environ if name.startswith(("GIT_", "EMAIL"))}
    others = Path(os.environ["XDG_CONFIG_HOME"], "git")  # its `ignore`, its `attributes`
    is_plain = (
        variables == _VARIABLES
        and _KNOWN.issuperset(os.listdir(git))
        and not os.listdir(git / "info")
        and (git / "config").read_bytes() == config
        and Path(os.environ["GIT_CONFIG_GLOBAL"]).read_bytes() == settings
        and not others.exists()
        and shutil.which("git") == _GIT is not None
    )
    if not is_plain:
        raise _NotPlainError
    _require_plain_index(git / "index")


def _require_plain_index(path: Path) -> None:
    """Have no entry in it about which git knows more than its content."""
    if not path.exists():
        return
    data = path.read_bytes()
    signature, version, count = struct.unpack_from("!4s2L", data)
    at = 12
    for _ in range(count):
        mode, flags = struct.unpack_from("!L", data, at + 24)[0], data[at + 60]
        if version != 2 or flags & 0xF0 or stat.S_IFMT(mode) == stat.S_IFDIR | stat.S_IFLNK:
            raise _NotPlainError
        at = (data.index(b"\0", at + 62) - at + 8) // 8 * 8 + at
    if signature != b"DIRC" or data[at : at + 4] not in (b"TREE", data[-20:-16]):
        raise _NotPlainError


def _branch(git: Path) -> str:
    head = (git / "HEAD").read_text()
    if not re.fullmatch(r"ref: refs/heads/[\w-]+\n", head):
        raise _NotPlainError
    return head.split()[1]


def _read_parent(git: Path, head: str) -> str:
    try:
        return (git / head).read_text().strip()
    except FileNotFoundError:
        return ""


def _tree_of(git: Path, commit_id: str) -> str:
    if not commit_id:
        return ""
    data = zlib.decompress((git / "objects" / commit_id[:2] / commit_id[2:]).read_bytes())
    return data.partition(b"\0tree ")[2][:40].decode()


def _files(folder: bytes, prefix: bytes) -> Iterator[_File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path, name = prefix + entry.name, entry.name
            if name == b".git" and not prefix:
                continue
            status = entry.stat(follow_symlinks=False)
            if name.lower() in _SPECIAL:
                raise _NotPlainError
            if stat.S_ISDIR(status.st_mode):
                yield from _files(entry.path, path + b"/")
            elif stat.S_ISLNK(status.st_mode):
                yield _File(path, status, 0o120000, os.readlink(entry.path))
            elif stat.S_ISREG(status.st_mode):
                mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
                with open(entry.path, "rb") as file:
                    yield _File(path, status, mode, file.read())
            else:
                raise _NotPlainError


# What git writes.


def _store(git: Path, kind: bytes, content: bytes) -> bytes:
    """Write an object, unless it is there; return its id."""
    data = b"%s %d\0%s" % (kind, len(content), content)
    digest = hashlib.sha1(data, usedforsecurity=False)
    name = digest.hexdigest()
    folder = f"{git}/objects/{name[:2]}"
    try:
        os.makedirs(folder, exist_ok=True)
        fd = os.open(f"{folder}/{name[2:]}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        return digest.digest()
    with open(fd, "wb") as file:
        file.write(zlib.compress(data, 1))
    return digest.digest()


def _write_tree(git: Path, files: list[_File], ids: list[bytes], prefix: bytes) -> _Tree:
    """Write the tree of a folder and all below; `files`: those that are in it."""
    entries: list[tuple[bytes, bytes, bytes]] = []  # the name as it is sorted, the mode, the id
    below: dict[bytes, list[int]] = {}
    for at, file in enumerate(files):
        name, slash, _rest = file.path[len(prefix) :].partition(b"/")
        if slash:
            below.setdefault(name, []).append(at)
        else:
            entries.append((name, b"%o" % file.mode, ids[at]))
    cached = []
    for name in sorted(below, key=lambda name: (len(name), name)):
        some = below[name]
        tree = _write_tree(
            git, [files[at] for at in some], [ids[at] for at in some], prefix + name + b"/"
        )
        entries.append((name + b"/", b"40000", tree.id))
        cached.append(b"%s\0%s" % (name, tree.cached))
    content = b"".join(
        b"%s %s\0%s" % (mode, name.removesuffix(b"/"), object_id)
        for name, mode, object_id in sorted(entries)
    )
    tree_id = _store(git, b"tree", content)
    head = b"%d %d\n%s" % (len(files), len(below), tree_id)
    return _Tree(tree_id, head + b"".join(cached))


def _write_index(git: Path, files: list[_File], ids: list[bytes], tree: _Tree) -> None:
    """Source: gitformat-index(5), version 2."""
    parts = [struct.pack("!4s2L", b"DIRC", 2, len(files))]
    for file, object_id in zip(files, ids, strict=True):
        times = [divmod(ns, 10**9) for ns in (file.status.st_ctime_ns, file.status.st_mtime_ns)]
        facts = (file.status.st_dev, file.status.st_ino, file.mode)
        owner = (file.status.st_uid, file.status.st_gid, file.status.st_size)
        numbers = [number & _LOW for number in (*times[0], *times[1], *facts, *owner)]
        entry = _ENTRY.pack(*numbers, object_id, min(len(file.path), _LONGEST_NAME)) + file.path
        parts.append(entry.ljust((len(entry) + 8) // 8 * 8, b"\0"))
    cached = b"\0" + tree.cached
    data = b"".join((*parts, b"TREE", struct.pack("!L", len(cached)), cached))
    lock = git / "index.lock"
    lock.write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())
    newest_ns = max(file.status.st_mtime_ns for file in files)
    for _ in range(_MOST_TICKS):
        # As late as git is: who compares the times need not read a file again.
        if lock.stat().st_mtime_ns > newest_ns:
            break
        time.sleep(_TICK_S)
        os.utime(lock)
    lock.rename(git / "index")


def _write_commit(git: Path, head: str, parent: str, tree: _Tree, message: bytes) -> None:
    now = time.localtime()
    minutes = (now.tm_gmtoff or 0) // 60
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    by = b"%s %d %s" % (_WHO, int(time.time()), zone.encode())
    parents = f"parent {parent}\n".encode() if parent else b""
    commit_id = _store(
        git,
        b"commit",
        b"tree %s\n%sauthor %s\ncommitter %s\n\n%s\n"
        % (tree.id.hex().encode(), parents, by, by, message),
    ).hex()
    what = b"commit" if parent else b"commit (initial)"
    line = b"%s %s %s\t%s: %s\n" % (
        (parent or "0" * 40).encode(),
        commit_id.encode(),
        by,
        what,
        message.partition(b"\n")[0],
    )
    for name in ("HEAD", head):
        log = git / "logs" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(line)
    (git / "COMMIT_EDITMSG").write_bytes(message + b"\n")
    (git / f"{head}.lock").write_text(f"{commit_id}\n")
    (git / f"{head}.lock").rename(git / head)
