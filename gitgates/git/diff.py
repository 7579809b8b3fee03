"""What differs between two trees: per file, as a patch id, and as text."""

from __future__ import annotations

import os
from collections import Counter

from gitgates.core.agent_types import FileDifference
from gitgates.core.record import Record
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.repo import nul_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Git, Repo

# With more files on one side, git only compares whole files to find renames, because it would
# compare every file with every other.
_RENAMES = ("-M", "-l400")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
# A reformatting adds and removes empty lines, too.
_NO_SPACE = (*_PLAIN, "-w", "--ignore-blank-lines")
_NUMBERS = ("diff-tree", "-r", "-z", "--numstat", "--raw", "--no-abbrev", *_NO_SPACE, *_RENAMES)
_PATCH = ("diff-tree", "-r", "-p", "--full-index", "-U3", "--src-prefix=a/", "--dst-prefix=b/")
_UNIFIED = (*_PATCH, *_PLAIN)
# The user's own attributes, and settings that a session can change, must not decide what is text.
_SETTINGS = (("core.attributesFile", os.devnull), ("core.bigFileThreshold", "512m"))
_SUBMODULE = b"160000"
_MOST_LINES = 1_000_000  # of a diff for a patch id
_MOST_ARGS = 64 << 10  # bytes of paths in one call
_ATTRIBUTES = ".gitattributes"
_ATTRIBUTE_NAMES = ("linguist-generated", "linguist-vendored", "diff")


class Trees(Record):
    """The trees before and after a change."""

    repo: Repo
    before: str
    after: str
    began_s: float = 0.0  # when it began, to tell whether the attributes are older


def file_differences(trees: Trees) -> tuple[FileDifference, ...]:
    """Return each file that differs, sorted by path.

    Raises: GitError if one of the trees does not exist.
    """
    git = _reading(trees)
    changes = _differences(git, trees.before, trees.after)
    attributes = _attributes(git, trees, [change.path for change in changes])
    return tuple(
        sorted(change._replace(attribute=attributes.get(change.path, "")) for change in changes)
    )


def patch_id(trees: Trees) -> str:
    """Return `git patch-id --stable` of the change; empty if there is none, or it is huge.

    It ignores white space: a change that was only reformatted keeps its id.

    Raises: GitError if one of the trees does not exist.
    """
    git = _reading(trees)
    changes = _differences(git, trees.before, trees.after)
    if sum(change.added + change.removed for change in changes) > _MOST_LINES:
        return ""
    diff = git.out(*_UNIFIED, "--no-renames", trees.before, trees.after)
    fields = git.out("patch-id", "--stable", stdin=diff).split()
    return fields[0].decode() if fields else ""


def diff_text(trees: Trees, paths: Iterable[str]) -> bytes:
    """Return the change of some paths as a unified diff.

    Raises: GitError if one of the trees does not exist.
    """
    git, selected = _reading(trees), {*paths}
    changes = _differences(git, trees.before, trees.after)
    patch = b""
    for is_binary, options in ((True, _UNIFIED), (False, (*_UNIFIED, "--text"))):
        names = sorted(
            (change.path, change.was)
            for change in changes
            if change.path in selected and change.binary is is_binary
        )
        command = (*options, *_RENAMES, trees.before, trees.after, "--")
        patch += b"".join(git.out(*command, *chunk) for chunk in _chunks(names))
    return patch


def _reading(trees: Trees) -> Git:
    git = reading_git(trees.repo).with_settings(_SETTINGS)
    # This variable sets the number of context lines, and overrides -U.
    env = {name: value for name, value in git.env.items() if name != "GIT_DIFF_OPTS"}
    return git._replace(env=env)


def _differences(git: Git, before: str, after: str) -> list[FileDifference]:
    """Return the differing files of two trees, from git's raw and numstat records."""
    if before == after:
        return []
    fields = iter(git.out(*_NUMBERS, before, after, "--").split(b"\0"))
    metas: dict[bytes, tuple[bytes, bytes]] = {}  # path → how it differs, and its old path
    numbers: dict[bytes, tuple[int, int]] = {}  # path → lines added, and removed
    binary: list[bytes] = []
    for field in fields:
        if field.startswith(b":"):
            old_path = next(fields)
            path = next(fields) if b" R" in field else old_path
            metas[path] = field, old_path
        elif field:
            added, removed, path = field.split(b"\t", 2)
            if not path:  # a rename: both names follow
                path = (next(fields), next(fields))[1]
            if added == b"-":
                binary.append(path)
            else:
                numbers[path] = int(added), int(removed)
    numbers |= _hidden_lines(git, {path: metas[path][0] for path in binary})
    changes = []
    for path, (meta, old_path) in metas.items():
        old_mode, mode, old_id, object_id, status = meta[1:].split(b" ")
        lines = numbers.get(path, (0, 0))  # without a count, only white space differs
        changes.append(
            FileDifference(
                path=os.fsdecode(path),
                status=status[:1].decode(),
                was=os.fsdecode(old_path) if status.startswith(b"R") else "",
                added=lines[0],
                removed=lines[1],
                binary=path in binary and path not in numbers,
                submodule=_SUBMODULE in (old_mode, mode),
                same_content=old_id == object_id,
            )
        )
    return changes


def _hidden_lines(git: Git, binary: dict[bytes, bytes]) -> dict[bytes, tuple[int, int]]:
    """Return path → lines added and removed, for text files that git takes for binary.

    A NUL or an attribute is enough for that; work must not hide behind either.
    """
    if not binary:
        return {}
    ids = {path: [name.decode() for name in meta.split(b" ")[2:4]] for path, meta in binary.items()}
    contents = read_blobs(git, [name for both in ids.values() for name in both if name.strip("0")])
    lines = {}
    for path, (old, new) in ids.items():
        try:
            before, after = (_line_counts(contents.get(name, b"")) for name in (old, new))
        except UnicodeDecodeError:
            continue
        lines[path] = (after - before).total(), (before - after).total()
    return lines


def _line_counts(content: bytes) -> Counter[str]:
    """Return how often a text has each line, without white space."""
    lines = ("".join(line.split()) for line in content.decode().splitlines())
    return Counter(filter(None, lines))


def _chunks(paths: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield as many paths as fit into one call, with a renamed file's names together."""
    chunk: list[str] = []
    size = 0
    for names in paths:
        arguments = [name for name in names if name]
        length = sum(len(os.fsencode(name)) + 1 for name in arguments)
        if chunk and size + length > _MOST_ARGS:
            yield chunk
            chunk, size = [], 0
        chunk += arguments
        size += length
    if chunk:
        yield chunk


def _attributes(git: Git, trees: Trees, paths: list[str]) -> dict[str, str]:
    """Return path → the attribute that says that nobody wrote it by hand.

    Returns none if the change touches attributes, or if work could hide behind them.

    Raises: GitError if git fails.
    """
    info_abs = f"{trees.repo.common_dir_abs}/info/attributes"
    files = _attribute_files(trees.repo.root_abs, paths)
    is_changed = any(path.rpartition("/")[2] == _ATTRIBUTES for path in paths)
    if not paths or is_changed or not _is_older(info_abs, trees.began_s):
        return {}
    tracked = git.names("ls-tree", "-z", "--name-only", trees.before, "--", *files) if files else ()
    if not {*tracked}.issuperset(files):  # git does not track one of them
        return {}
    raw = git.out("check-attr", "-z", "--stdin", *_ATTRIBUTE_NAMES, stdin=nul_ended(paths))
    fields = raw.split(b"\0")
    attributes: dict[str, str] = {}
    for name, attribute, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
        if attribute == b"diff" and value == b"unset":
            attributes.setdefault(os.fsdecode(name), "-diff")
        elif attribute != b"diff" and value.lower() in (b"set", b"true"):
            attributes.setdefault(os.fsdecode(name), os.fsdecode(attribute))
    return attributes


def _attribute_files(root_abs: str, paths: list[str]) -> list[str]:
    """Return each existing .gitattributes in a folder above one of the paths."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    names = (f"{folder}/{_ATTRIBUTES}".lstrip("/") for folder in sorted(folders))
    return [name for name in names if os.path.lexists(f"{root_abs}/{name}")]


def _is_older(path_abs: str, stamp: float) -> bool:
    """Return whether a file has not been modified since then, or is missing."""
    try:
        return os.stat(path_abs).st_ctime < stamp
    except OSError:
        return True
