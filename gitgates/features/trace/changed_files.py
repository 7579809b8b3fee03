"""The changes between two points of the memory of files, by `git diff`, in the ledger's format."""

from __future__ import annotations

import os
import re
from hashlib import sha256

from gitgates.files.memory import Memory
from gitgates.git.object_store import LARGEST, read_blobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from gitgates.git.repo import Git, Repo
    from gitgates.store.log import Fact

_DIFF = (
    *("-c", f"core.bigFileThreshold={LARGEST + 1}", "diff-tree", "-r", "-z", "--raw", "-p", "-U0"),
    *("--no-abbrev", "-M", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINK, _SUBMODULE = "120000", "160000"
_OPERATIONS = {"A": "create", "D": "delete", "R": "rename"}
_MOST_BLOCKS = 200


def changed_files(repo: Repo, before: str, after: str, paths: Collection[str]) -> list[Fact]:
    """Return each given file's change between two trees. Raises: GitError.

    Submodules, and changes of mode only, are left out.
    """
    if before == after:
        return []
    memory = Memory(repo)
    git, nothing = memory.reading, "" if before and after else memory.write_tree([])
    raw, _, patch = git.out(*_DIFF, before or nothing, after or nothing, "--").partition(b"\0\0")
    sections = iter(re.split(rb"^diff --git .*\n", patch, flags=re.MULTILINE)[1:])
    fields = iter(raw.split(b"\0"))
    files: list[Fact] = []
    for meta in fields:
        section = next(sections)
        old_mode, mode, old_blob, blob, status = meta.decode().lstrip(":").split(" ")
        path = old_path = os.fsdecode(next(fields))
        if status[0] == "R":
            path = os.fsdecode(next(fields))
        if status[0] == "T":  # a file replaced a link: removed, and created
            section += next(sections)
        is_mode = old_blob == blob and status[0] != "R"
        if path not in paths or is_mode or _SUBMODULE in (old_mode, mode):
            continue
        renamed = {"was": old_path} if status[0] == "R" else {}
        kind = "link" if _LINK in (mode if blob.strip("0") else old_mode) else "text"
        names = {"path": path, "operation": _OPERATIONS.get(status[0], "edit"), **renamed}
        is_binary = b"\nBinary files " in b"\n" + section
        files.append(
            {**names, "kind": "binary" if is_binary else kind, "before": old_blob, "blob": blob}
            | {"blocks": [] if kind == "link" else _blocks(section)}
        )
    return _hashed(git, files)


def _hashed(git: Git, files: list[Fact]) -> list[Fact]:
    """Return the files with the SHA-256 of their old and new bytes; huge files are not read."""
    contents = read_blobs(git, [file[name] for file in files for name in ("before", "blob")])
    hashed = []
    for file in files:
        before, after = (contents.get(file[name]) for name in ("before", "blob"))
        is_huge = any(
            file[name].strip("0") and file[name] not in contents for name in ("before", "blob")
        )
        hashed.append(
            {
                **file,
                "kind": "huge" if is_huge else file["kind"],
                "before": "" if before is None else sha256(before).hexdigest(),
                "after": "" if after is None else sha256(after).hexdigest(),
                "blob": file["blob"] if file["blob"].strip("0") else "",
                "lines": len((after or b"").splitlines()) if file["kind"] == "text" else 0,
            }
        )
    return hashed


def _blocks(section: bytes) -> list[Fact]:
    """Return each block of differing lines; if there are very many, the last contains the rest.

    `old` and `new` are its first line, from 1, and its number of lines; if it is empty, the line
    before which it would be. A block with new lines has their hash, each with a final LF.
    """
    blocks: list[Fact] = []
    lines: list[bytes] = []
    for line in section.split(b"\n"):
        if hunk := _HUNK.match(line):
            old, old_count, new, count = (int(number or 1) for number in hunk.groups())
            lines = []
            # Git gives the line after which an empty block is.
            spans = [old + (not old_count), old_count], [new + (not count), count]
            blocks.append({"old": spans[0], "new": spans[1], "lines": lines})
        elif blocks and line.startswith(b"+"):
            lines.append(line[1:] + b"\n")
    for block in blocks:
        if added := b"".join(block.pop("lines")):
            block["sha256"] = sha256(added).hexdigest()
    return blocks[:_MOST_BLOCKS]
