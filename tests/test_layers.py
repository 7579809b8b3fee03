"""Who may import whom, and what only some may do. `.importlinter` holds the layers as well.

Read from the source: an import inside a function, or one for type checkers only, ties two parts of
the house together as any other does.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gitgates"
LONGEST_FILE = {"gitgates": 400, "docs": 400, "tests": 600}  # a test file is a list
LONGEST_FUNCTION = 60

# part of the house → the parts that it may import. A package may import itself besides.
_ROOT = ("__init__", "__version__")  # the version, which everybody may know
_WORDS = ("record", "errors", "clean", "yaml_load", "types", "environ", "lifecycle")
_BASE = (*_WORDS, "store", "config", "hosts", "proc")
_RUN = (*_BASE, "git", "worktree", "engine")
_SHOWN = (*_RUN, "report", "artifacts", "policies")
_REVIEW = (*_SHOWN, "review", "weakening")
_ALL = (*_REVIEW, "agent")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "record": (),
    "errors": (),
    "clean": (),
    "yaml_load": (),
    "types": ("record",),
    "environ": ("record",),
    "lifecycle": ("record", "types"),
    "store": _WORDS,
    "config": (*_WORDS, "store"),
    "hosts": _WORDS,
    "proc": (*_WORDS, "store"),
    "git": (*_WORDS, "store", "proc"),
    "worktree": (*_WORDS, "store", "proc", "git"),
    "engine": (*_BASE, "git", "worktree"),
    "report": _RUN,
    "artifacts": (*_WORDS, "store", "report", "engine"),
    "policies": (*_RUN, "report", "artifacts"),
    "weakening": (*_SHOWN, "review"),
    "review": _SHOWN,
    "agent": _REVIEW,
    "install": _SHOWN,
    "discover": _SHOWN,
    "doctor": (*_SHOWN, "install", "discover"),
    "entry": _ALL,
    "cli": (*_ALL, "install", "discover", "doctor"),
    "__main__": ("errors", "clean", "entry", "cli"),
    "__init__": (),
}

# Heavy packages, and the only places that may load them: no hook comes there.
COLD = (
    *("cli/", "install/", "discover", "doctor"),
    "config/insert.py",  # writes settings, with tomlkit
    "yaml_load.py",
)

# what is held back → the places that may use it
ONLY_IN: dict[str, tuple[str, ...]] = {
    "os.environ": ("environ.py",),
    "os.environb": ("environ.py",),
    "os.getenv": ("environ.py",),
    "os.putenv": (),
    "os.unsetenv": (),
    "print": ("entry/", "cli/", "__main__.py"),
    "input": (),
    "click.echo": ("cli/",),
    "exit": (),
    "quit": (),
    "sys.exit": ("entry/", "cli/", "__main__.py"),
    # kept.py ends a process that it forked itself, which must not run our way out.
    "os._exit": ("entry/", "cli/", "__main__.py", "git/previous_hook.py"),
    "sys.stdout": ("entry/", "cli/", "__main__.py"),
    "sys.stderr": ("entry/", "cli/", "__main__.py"),
    "sys.stdin": ("entry/", "cli/", "__main__.py"),
    "sys.argv": ("__main__.py",),
    "os.fork": ("proc/", "git/", "worktree/"),
    "os.kill": ("proc/", "git/", "worktree/"),
    "os.killpg": ("proc/", "git/", "worktree/"),
    "os.posix_spawn": ("proc/", "git/", "worktree/"),
    "os.system": (),
    "os.popen": (),
    "os.execv": ("__main__.py",),  # itself
    "os.execve": (),
    "os.execvp": (),
    "os.execvpe": (),
}
NOWHERE = ("subprocess", "pathlib", "dataclasses", "logging", "argparse", "multiprocessing")


class Import(NamedTuple):
    """One module that a file imports."""

    file: str  # relative to the package
    line: int
    name: str  # dotted
    for_types: bool  # in `if TYPE_CHECKING:`, so that it never happens


@functools.cache
def _trees() -> dict[str, ast.Module]:
    files = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_bytes()) for path in files}


def _for_types_only(tree: ast.Module) -> set[ast.AST]:
    """Return every node below an `if TYPE_CHECKING:`, but not below its `else`."""
    return {
        below
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for below in ast.walk(statement)
    }


def _imports(file: str, tree: ast.Module) -> list[Import]:
    found: list[Import] = []
    typed = _for_types_only(tree)
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import hides its layer"
            # `from gitgates import errors` imports a module, `from gitgates.errors import …` too.
            names = [node.module or ""]
            if node.module == "gitgates":
                names = [f"gitgates.{alias.name}" for alias in node.names]
        found += [Import(file, node.lineno, name, node in typed) for name in names]  # type: ignore[attr-defined]
    return found


@functools.cache
def _all_imports() -> list[Import]:
    return [found for file, tree in _trees().items() for found in _imports(file, tree)]


def _part(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def _target(module: str) -> str:
    """Return the part of the house that `gitgates.…` names."""
    return module.split(".")[1] if "." in module else "__init__"


def _is_in(file: str, places: tuple[str, ...]) -> bool:
    return file.startswith(places)


def test_every_part_of_the_house_has_its_row() -> None:
    parts = {_part(file) for file in _trees()}
    assert sorted(parts - MAY_IMPORT.keys()) == []


def test_each_part_imports_only_what_lies_below_it() -> None:
    wrong = [
        f"gitgates/{file}:{line}: imports {name}"
        for file, line, name, _for_types in _all_imports()
        if name.split(".")[0] == "gitgates"
        and _target(name) not in (*_ROOT, _part(file), *MAY_IMPORT[_part(file)])
    ]
    assert wrong == []


def test_the_table_has_no_circles() -> None:
    done: set[str] = set()
    while left := MAY_IMPORT.keys() - done:
        free = {part for part in left if set(MAY_IMPORT[part]) <= done}
        assert free, f"these import one another: {sorted(left)}"
        done |= free


def test_what_hooks_load_is_of_the_standard_library() -> None:
    wrong = [
        f"gitgates/{file}:{line}: imports {name}"
        for file, line, name, for_types in _all_imports()
        if name.split(".")[0] not in ("gitgates", *sys.stdlib_module_names)
        and not for_types
        and not _is_in(file, COLD)
    ]
    assert wrong == []


def test_heavy_modules_of_the_standard_library_are_imported_nowhere() -> None:
    wrong = [
        f"gitgates/{file}:{line}: imports {name}"
        for file, line, name, for_types in _all_imports()
        if name.split(".")[0] in NOWHERE and not for_types
    ]
    assert wrong == []


def _used_names(tree: ast.Module) -> list[tuple[int, str]]:
    """Return every name that is read, dotted where it is `module.name`, with its line."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                found.append((node.lineno, f"{owner}.{name}"))
            case ast.Name(id=name, ctx=ast.Load()):
                found.append((node.lineno, name))
            case ast.ImportFrom(module=str(owner)):
                found += [(node.lineno, f"{owner}.{alias.name}") for alias in node.names]
            case _:
                pass
    return found


@functools.cache
def _all_used_names() -> list[tuple[str, int, str]]:
    return [(file, *used) for file, tree in _trees().items() for used in _used_names(tree)]


@pytest.mark.parametrize("name", ONLY_IN)
def test_is_used_only_where_it_belongs(name: str) -> None:
    wrong = [
        f"gitgates/{file}:{line}: {used}"
        for file, line, used in _all_used_names()
        if used == name and not (ONLY_IN[name] and _is_in(file, ONLY_IN[name]))
    ]
    assert wrong == []


def _own_files() -> list[Path]:
    return [path for top in LONGEST_FILE for path in (ROOT / top).rglob("*.py")]


def test_no_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): path.read_bytes().count(b"\n") for path in _own_files()}
    too_long = {str(p): n for p, n in lengths.items() if n > LONGEST_FILE[p.parts[0]]}
    assert too_long == {}


def test_no_function_is_too_long() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines"
        for path in _own_files()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert wrong == []


def test_every_rule_that_is_broken_has_its_reason_beside_it() -> None:
    mark = re.compile(r"# [n]oqa(?!: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* - \S)")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _own_files()
        if not path.name.startswith("weakening_")  # samples of what others write
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark.search(line)
    ]
    assert wrong == []
