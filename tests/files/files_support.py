"""What a working tree holds, found by reading every byte: to compare a look with."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

from conftest import Repo

from gitgates.files.ignored import can_be_made
from gitgates.files.look import DEFAULT, Limits, Look, look
from gitgates.files.memory import Memory
from gitgates.git.repo import Repo as Repository
from gitgates.git.repo import find_repo

Files = dict[str, tuple[str, str]]  # path → mode and object, as git prints them


def repository(repo: Repo) -> Repository:
    return find_repo(str(repo.path), dict(os.environ))


def seen(repo: Repo, limits: Limits = DEFAULT, *, ignored: bool = True) -> Look:
    return look(repository(repo), limits, ignored=ignored)


def listed(repo: Repo, tree: str) -> Files:
    """What a tree of the memory has, but for submodules."""
    if not tree:
        return {}
    output = Memory(repository(repo)).reading.out("ls-tree", "-r", "-z", "--full-tree", tree)
    found = {}
    for entry in os.fsdecode(output).split("\0")[:-1]:
        meta, _, path = entry.partition("\t")
        mode, kind, object_id = meta.split(" ")
        if kind == "blob":
            found[path] = mode, object_id
    return found


def names(repo: Repo, *options: str) -> list[str]:
    output = subprocess.run(
        ("git", "ls-files", "-z", *options), cwd=repo.path, capture_output=True, check=True
    ).stdout
    return list(dict.fromkeys(os.fsdecode(output).split("\0")[:-1]))


def present(repo: Repo) -> Files:
    """Tracked and untracked files, nothing ignored."""
    return _read(repo.path, names(repo, "--cached", "--others", "--exclude-standard"))


def ignored(repo: Repo) -> Files:
    """Ignored files that cannot be made again."""
    paths = names(repo, "--others", "--ignored", "--exclude-standard")
    return _read(repo.path, [path for path in paths if not _is_made(repo.path, path)])


def _is_made(root: Path, path: str) -> bool:
    if path.endswith(".pyc"):
        return True
    folder = os.path.dirname(path)
    while folder:
        if can_be_made(f"{root}/{folder}", set(os.listdir(root / folder))):
            return True
        folder = os.path.dirname(folder)
    return False


def _read(root: Path, paths: list[str]) -> Files:
    found = {}
    for path in paths:
        place = root / path
        if any(above.is_symlink() for above in place.parents if above != root):
            continue
        try:
            mode = place.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(mode):
            found[path] = "120000", object_id(os.fsencode(os.readlink(place)))
        elif stat.S_ISREG(mode):
            git_mode = "100755" if mode & 0o100 else "100644"
            found[path] = git_mode, object_id(place.read_bytes())
    return found


def object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()


def unusual(repo: Repo, paths: list[str]) -> dict[str, int]:
    """Permissions that the umask would not give."""
    mask = os.umask(0o022)
    os.umask(mask)
    found = {}
    for path in paths:
        mode = (repo.path / path).lstat().st_mode
        expected = (0o777 if mode & 0o100 else 0o666) & ~mask
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) != expected:
            found[path] = stat.S_IMODE(mode)
    return found
