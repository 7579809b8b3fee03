"""What differs between two trees: per file, as a patch id, and as text."""

from __future__ import annotations

import os
import re

from gitgates.core.agent_types import FileDifference
from gitgates.core.record import Record
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.repo import nul_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Git, Repo

    Numbers = dict[bytes, tuple[bytes, bytes]]  # path → lines added, and removed; `-`: binary

# Above so many files on a side, git compares only whole files to find what was renamed: it would
# compare each with each.
_RENAMES = ("-M", "-l400")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
# A reformatting adds and removes empty lines, too.
_NO_SPACE = (*_PLAIN, "-w", "--ignore-blank-lines")
_NUMBERS = ("diff-tree", "-r", "-z", "--numstat", "--raw", "--no-abbrev", *_NO_SPACE, *_RENAMES)
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", *_PLAIN)
_PATCH = ("diff-tree", "-r", "-p", "--full-index")
_UNIFIED = (*_PATCH, "-U3", "--src-prefix=a/", "--dst-prefix=b/", *_PLAIN)
_HUNKS = (*_PATCH, "-U0", "--diff-filter=MR", *_NO_SPACE, *_RENAMES)
# Neither the user's own attributes nor settings that a session can make say what is a text.
_SETTINGS = (("core.attributesFile", os.devnull), ("core.bigFileThreshold", "512m"))
_SUBMODULE = b"160000"
_MOST_BYTES = 50 << 20  # of a diff that a patch id is made of, and of a file called binary
_MOST_LINES = 50_000  # that are looked at for line ends alone
_LARGEST = 16 << 20  # bytes of a notebook
_MOST_NOTEBOOKS = 32  # both sides of them
_LIST_END = re.compile(rb",\s*\n\s*([)\]}])")
_MOST_ARGS = 64 << 10  # bytes of paths in one call

# Of programs, their settings and their documentation.
_TEXT_ENDINGS = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue"),
    *(".svelte", ".astro", ".go", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".gradle"),
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".mm", ".swift", ".cs", ".fs"),
    *(".vb", ".rb", ".php", ".pl", ".pm", ".lua", ".sh", ".bash", ".zsh", ".fish", ".ps1"),
    *(".bat", ".cmd", ".sql", ".tf", ".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".dart"),
    *(".jl", ".r", ".zig", ".nix", ".el", ".mk", ".cmake", ".proto", ".graphql", ".html"),
    *(".htm", ".css", ".scss", ".sass", ".less", ".xml", ".json", ".jsonc", ".toml", ".yml"),
    *(".yaml", ".ini", ".cfg", ".conf", ".properties", ".md", ".rst", ".txt", ".csv", ".bats"),
)
_TEXT_NAMES = ("Makefile", "Dockerfile", "Rakefile", "Gemfile", "Justfile", "Jenkinsfile")

_ATTRIBUTES = ".gitattributes"
_ATTRIBUTE_NAMES = ("linguist-generated", "linguist-vendored", "diff")
# In front of an attribute that excuses nothing, because the session has set it.
NOT_BELIEVED = "!"


class Trees(Record):
    """The trees before and after a change."""

    repo: Repo
    before: str
    after: str
    began_s: float = 0.0  # when it began, so that it is known whose attributes are


def file_differences(trees: Trees) -> tuple[FileDifference, ...]:
    """Return each file that differs, sorted by path.

    Raises: GitError where one of the trees does not exist.
    """
    before, after = trees.before, trees.after
    git = _reading(trees)
    by_path = {change.path: change for change in _differences(git, before, after)}
    attributes, doubtful = _attributes(git, trees, before, list(by_path))
    names = [change.path for change in by_path.values() if change.binary]
    names = [path for path in names if path in doubtful or is_text_by_name(path)]
    for path, added, removed in _counted_as_text(git, before, after, names):
        change = by_path[path]
        most = max(change.added, added), max(change.removed, removed)
        by_path[path] = change._replace(binary=False, added=most[0], removed=most[1])
    for path, attribute in attributes.items():
        by_path[path] = by_path[path]._replace(attribute=attribute)
    return tuple(sorted(by_path.values()))


def patch_id(trees: Trees) -> str:
    """Return `git patch-id --stable` of the change; empty if there is none, or it is huge.

    White space is in none: a change that was only reformatted keeps its id.

    Raises: GitError where one of the trees does not exist.
    """
    before, after = trees.before, trees.after
    git = _reading(trees)
    # The diff is hardly larger than the files that differ.
    if before == after or _size_of(git, _objects(git, before, after).values()) > _MOST_BYTES:
        return ""
    diff = git.out(*_UNIFIED, "--no-renames", before, after)
    fields = git.out("patch-id", "--stable", stdin=diff).split()
    return fields[0].decode() if fields else ""


def diff_text(trees: Trees, paths: tuple[str, ...]) -> bytes:
    """Return the change of some paths as a unified diff.

    Raises: GitError where one of the trees does not exist.
    """
    before, after = trees.before, trees.after
    git = _reading(trees)
    by_path = {change.path: change for change in _differences(git, before, after)}
    selected = [by_path[path] for path in sorted(set(paths)) if path in by_path]
    patch = b""
    for is_text in (False, True):  # git takes one NUL for a sign of no text
        names = [
            (change.path, change.was) for change in selected if _is_hidden_text(change) is is_text
        ]
        options = (*_UNIFIED, *(("--text",) if is_text else ()), *_RENAMES, before, after, "--")
        patch += b"".join(git.out(*options, *chunk) for chunk in _chunks(names))
    return patch


def is_text_by_name(path: str) -> bool:
    """Return whether a file is text by its name, whatever is in it."""
    name = path.rpartition("/")[2]
    return name in _TEXT_NAMES or name.lower().endswith(_TEXT_ENDINGS)


def _is_hidden_text(change: FileDifference) -> bool:
    return change.binary and is_text_by_name(change.path)


def _reading(trees: Trees) -> Git:
    git = reading_git(trees.repo).with_settings(_SETTINGS)
    # How many lines of context; it is stronger than -U.
    env = {name: value for name, value in git.env.items() if name != "GIT_DIFF_OPTS"}
    return git._replace(env=env)


def _differences(git: Git, before: str, after: str) -> Iterator[FileDifference]:
    """Yield git's raw and numstat records for two trees: first all raw ones."""
    if before == after:
        return
    fields = iter(git.out(*_NUMBERS, before, after, "--").split(b"\0"))
    metas: dict[bytes, bytes] = {}  # path → how it differs
    names: dict[bytes, bytes] = {}  # path → what it was called
    numbers: Numbers = {}
    for field in fields:
        if field.startswith(b":"):
            old_path = next(fields)
            path = next(fields) if b" R" in field else old_path
            metas[path], names[path] = field, old_path
        elif field:
            added, removed, path = field.split(b"\t", 2)
            if not path:  # a rename: both names follow
                path = (next(fields), next(fields))[1]
            numbers[path] = added, removed
    edited = _edited_in_notebooks(git, {p: metas[p] for p in numbers if p.endswith(b".ipynb")})
    others = {path: both for path, both in numbers.items() if path not in edited}
    edited |= _edited_lines(git, before, after, metas=metas, numbers=others)
    for path, meta in metas.items():
        old_mode, mode, old_id, object_id, status = meta[1:].split(b" ")
        lines = _lines(numbers, path)
        yield FileDifference(
            path=os.fsdecode(path),
            status=status[:1].decode(),
            was=os.fsdecode(names[path]) if status.startswith(b"R") else "",
            added=lines[0],
            removed=lines[1],
            edited=edited.get(path),
            binary=numbers.get(path, (b"", b""))[0] == b"-",
            submodule=_SUBMODULE in (old_mode, mode),
            same_content=old_id == object_id,
        )


def _lines(numbers: Numbers, path: bytes) -> tuple[int, int]:
    """Return how many lines were added and removed; none if only white space differs."""
    added, removed = numbers.get(path, (b"0", b"0"))
    return (0, 0) if added == b"-" else (int(added), int(removed))


def _edited_lines(
    git: Git, before: str, after: str, *, metas: dict[bytes, bytes], numbers: Numbers
) -> dict[bytes, int]:
    """Return path → edited lines, where wrapped or joined lines make them fewer."""
    # A line that is wrapped or joined is removed and added; where nothing is, none was.
    candidates = {
        path: _ids(metas[path])
        for path in numbers
        if metas[path][-1:] != b"A" and min(_lines(numbers, path)) > 0
    }
    lines = sum(max(_lines(numbers, path)) for path in candidates)
    if not candidates or lines > _MOST_LINES:
        return {}
    patch = git.out(*_HUNKS, before, after, "--")
    counts = {ids: sum(map(_edited_in_hunk, hunks)) for ids, hunks in _files_of(patch)}
    return {
        path: counts[ids]
        for path, ids in candidates.items()
        if ids in counts and counts[ids] < max(_lines(numbers, path))
    }


def _files_of(patch: bytes) -> Iterator[tuple[bytes, list[list[bytes]]]]:
    """Yield the objects and the lines of the hunks of each file in a patch without context."""
    for part in re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(rb"^@@ .*\n", part, flags=re.MULTILINE)
        if index := re.search(rb"^index (\S+)", head, re.MULTILINE):
            yield index[1], [hunk.split(b"\n") for hunk in hunks]


def _edited_in_hunk(lines: list[bytes]) -> int:
    """Return how many lines a hunk edits: 0 if it only reformats."""
    sides = [[line[1:] for line in lines if line[:1] == sign] for sign in (b"-", b"+")]
    # A list that is wrapped may end in a comma.
    old, new = (b"".join(_LIST_END.sub(rb"\1", b"\n".join(side)).split()) for side in sides)
    return 0 if old == new else max(map(len, sides))


def _edited_in_notebooks(git: Git, notebooks: dict[bytes, bytes]) -> dict[bytes, int]:
    """Return path → lines of the cells' sources that differ; damaged notebooks are left out."""
    if not notebooks or len(notebooks) * 2 > _MOST_NOTEBOOKS:
        return {}
    from collections import Counter  # seldom needed

    sides = {path: _ids(meta).decode().split("..") for path, meta in notebooks.items()}
    names = [object_id for both in sides.values() for object_id in both if object_id.strip("0")]
    contents = read_blobs(git, names, _LARGEST)
    edited = {}
    for path, both in sides.items():
        versions = [
            contents.get(object_id) if object_id.strip("0") else b'{"cells": []}'
            for object_id in both
        ]
        old, new = map(_sources, versions)
        if old is not None and new is not None:
            removed, added = Counter(old) - Counter(new), Counter(new) - Counter(old)
            edited[path] = max(removed.total(), added.total())
    return edited


def _sources(content: bytes | None) -> list[str] | None:
    """Return the lines of a notebook's cells, without white space; None if it is none."""
    import json  # seldom needed

    if content is None:
        return None
    try:
        cells = json.loads(content)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    lines = ("".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line]


def _counted_as_text(
    git: Git, before: str, after: str, paths: list[str]
) -> Iterator[tuple[str, int, int]]:
    """Yield each file that git takes for binary, with the lines added and removed as in a text."""
    args = (*_PATCH, "-U0", "--text", "--no-renames", *_NO_SPACE, before, after, "--")
    sizes = _objects(git, before, after) if paths else {}
    for path in paths:  # each alone: few are like that; git's own numbers know no --text
        if _size_of(git, [sizes[path]]) > _MOST_BYTES:
            continue
        hunks = re.split(rb"^@@ .*\n", git.out(*args, path), flags=re.MULTILINE)[1:]
        bodies = (hunk.partition(b"\ndiff --git ")[0] for hunk in hunks)
        signs = [line[:1] for body in bodies for line in body.split(b"\n")]
        yield path, signs.count(b"+"), signs.count(b"-")


def _objects(git: Git, before: str, after: str) -> dict[str, bytes]:
    """Return each path that differs with `OLD..NEW`, its objects as a patch names them."""
    fields = git.out(*_RAW, before, after, "--").split(b"\0")
    pairs = zip(fields[0::2], fields[1::2], strict=False)
    return {os.fsdecode(path): _ids(meta) for meta, path in pairs}


def _ids(meta: bytes) -> bytes:
    return b"..".join(meta.split(b" ")[2:4])


def _size_of(git: Git, pairs: Iterable[bytes]) -> int:
    """Return how many bytes objects have together; `pairs`: `OLD..NEW`."""
    names = {
        object_id for pair in pairs for object_id in pair.split(b"..") if object_id.strip(b"0")
    }
    query = b"".join(object_id + b"\n" for object_id in sorted(names))
    sizes = git.out("cat-file", "--batch-check=%(objectsize)", stdin=query).splitlines()
    # A submodule's commit is not here: `… missing`.
    return sum(int(size) for size in sizes if size.isdigit())


def _chunks(paths: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield paths, both names of a renamed file together, as many as fit into one call."""
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


def _attributes(
    git: Git, trees: Trees, before: str, paths: list[str]
) -> tuple[dict[str, str], set[str]]:
    """Return path → the attribute for generated files; and paths that may be text.

    An attribute is believed only as far as the session has not said it itself, or work could hide
    behind it; else it has NOT_BELIEVED in front, and what the session has had called binary may be
    none.

    Raises: GitError where git does not tell.
    """
    info_abs = f"{trees.repo.common_dir_abs}/info/attributes"
    files = _attribute_files(trees.repo.root_abs, paths)
    if not files and not os.path.exists(info_abs):
        return {}, set()  # most often; a .gitattributes that is gone excuses nothing
    raw = git.out("check-attr", "-z", "--stdin", *_ATTRIBUTE_NAMES, stdin=nul_ended(paths)).split(
        b"\0"
    )
    attributes: dict[str, str] = {}
    special: set[str] = set()
    for name, attribute, value in zip(raw[0::3], raw[1::3], raw[2::3], strict=False):
        path = os.fsdecode(name)
        if attribute == b"diff" and value != b"unspecified":
            special.add(path)
        if attribute == b"diff" and value == b"unset":
            attributes.setdefault(path, "-diff")
        if attribute != b"diff" and value.lower() in (b"set", b"true"):
            attributes.setdefault(path, os.fsdecode(attribute))
    is_of_before = not any(path.rpartition("/")[2] == _ATTRIBUTES for path in paths)
    if is_of_before and _is_older(info_abs, trees.began_s) and _all_in_tree(git, before, files):
        return attributes, set()
    return {path: NOT_BELIEVED + attribute for path, attribute in attributes.items()}, special


def _attribute_files(root_abs: str, paths: list[str]) -> list[str]:
    """Return each .gitattributes that there is in a folder above one of the paths."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    names = (f"{folder}/{_ATTRIBUTES}".lstrip("/") for folder in sorted(folders))
    return [name for name in names if os.path.lexists(f"{root_abs}/{name}")]


def _all_in_tree(git: Git, tree: str, files: list[str]) -> bool:
    """Return whether all these files are in a tree."""
    tracked: set[str] = set()
    for chunk in _chunks((name, "") for name in files):
        tracked.update(git.names("ls-tree", "-z", "--name-only", tree, "--", *chunk))
    return tracked.issuperset(files)


def _is_older(path_abs: str, stamp: float) -> bool:
    """Return whether a file was not modified since, or is missing."""
    try:
        return os.stat(path_abs).st_ctime < stamp
    except OSError:
        return True
