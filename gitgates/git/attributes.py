"""What `.gitattributes` says of changed files: generated, vendored, or not to be shown in diffs.

It is believed only as far as the session has not said it itself, or work could hide behind it.
"""

from __future__ import annotations

import os

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.authorship import Span
    from gitgates.git.run import Git

_FILE = ".gitattributes"
_ASKED = ("linguist-generated", "linguist-vendored", "diff")
_FIRST = 500  # names in one call
# In front of an attribute that excuses nothing, because the session has set it.
NOT_BELIEVED = "!"


class Excuses(Record):
    """What attributes say of files."""

    said: dict[str, str]  # path → the attribute; with NOT_BELIEVED in front where it is no excuse
    doubtful: frozenset[str] = frozenset()  # what the session itself may have had called binary


def excuses(git: Git, span: Span, change: tuple[str, tuple[str, ...]]) -> Excuses:
    """Return what attributes say of the changed paths of a change, which began with a tree.

    Raises: GitError where git does not tell.
    """
    before, paths = change
    info_abs = f"{span.repo.common_dir_abs}/info/attributes"
    files = _files_over(span.repo.root_abs, paths)
    if not files and not os.path.exists(info_abs):
        return Excuses({})  # most often; a .gitattributes that is gone excuses nothing
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    raw = git.out("check-attr", "-z", "--stdin", *_ASKED, stdin=names).split(b"\0")
    said: dict[str, str] = {}
    special: set[str] = set()
    for name, attribute, value in zip(raw[0::3], raw[1::3], raw[2::3], strict=False):
        path = os.fsdecode(name)
        if attribute == b"diff" and value != b"unspecified":
            special.add(path)
        excuse = _excuse(attribute, value)
        if excuse:
            said.setdefault(path, excuse)
    if not said and not special:
        return Excuses({})
    if _is_older(info_abs, span.start.stamp) and _were_there(git, before, (files, paths)):
        return Excuses(said)
    return Excuses({p: NOT_BELIEVED + one for p, one in said.items()}, frozenset(special))


def _excuse(attribute: bytes, value: bytes) -> str:
    if attribute == b"diff":
        return "-diff" if value == b"unset" else ""
    return os.fsdecode(attribute) if value.lower() in (b"set", b"true") else ""


def _files_over(root_abs: str, paths: tuple[str, ...]) -> list[str]:
    """Return each .gitattributes that there is in a folder above one of the paths."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    names = (f"{folder}/{_FILE}".lstrip("/") for folder in sorted(folders))
    return [name for name in names if os.path.lexists(f"{root_abs}/{name}")]


def _were_there(git: Git, before: str, known: tuple[list[str], tuple[str, ...]]) -> bool:
    """Tell whether all these files were there before, and not one of them is among the changes."""
    files, paths = known
    if any(path.rpartition("/")[2] == _FILE for path in paths):
        return False
    there: set[str] = set()
    for at in range(0, len(files), _FIRST):
        listed = git.names("ls-tree", "-z", "--name-only", before, "--", *files[at : at + _FIRST])
        there.update(listed)
    return there.issuperset(files)  # one that git ignores is in no tree


def _is_older(path_abs: str, stamp: float) -> bool:
    """Tell whether a file was not touched since; one that is not there was not."""
    try:
        return os.stat(path_abs).st_ctime < stamp
    except OSError:
        return True
