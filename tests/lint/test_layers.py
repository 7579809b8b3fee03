"""What only some modules may import or do. `.importlinter` holds the layers.

Read from the source: an import inside a function, or one for type checkers only, ties two parts of
the house together as any other does.
"""

from __future__ import annotations

import ast
import collections
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import pytest
import size

from gitgates.hosts import AGENTS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gitgates"
OWN_FOLDERS = ("gitgates", "docs", "tests")
LONGEST_FUNCTION = 60

# Heavy packages, and the only places that may load them: no hook comes there.
COLD = (
    *("cli/", "verbs/", "setup/"),
    "config/edit.py",  # writes settings, with tomlkit
    "config/file_types.py",  # of gates that have types, with identify
    "features/advice/cli.py",
    "features/intents/cli.py",  # writes a scope, with tomlkit
    "features/trace/blame.py",  # reads objects, with dulwich
    # Of a process that talks to a server of the Remote Execution API, with grpcio.
    *("features/remote/connection.py", "features/remote/execution.py"),
    "features/remote/log_stream.py",
    *("features/remote/outputs.py", "features/remote/protos.py", "features/remote/storage.py"),
    "report/page.py",  # renders pages, with jinja2
    "core/yaml_load.py",
    "edit/blocks.py",
)

# what is held back → the places that may use it
ONLY_IN: dict[str, tuple[str, ...]] = {
    "os.environ": ("core/environ.py",),
    "os.environb": ("core/environ.py",),
    "os.getenv": ("core/environ.py",),
    "os.putenv": (),
    "os.unsetenv": (),
    "print": ("entry/", "cli/", "verbs/", "__main__.py"),
    "input": (),
    "click.echo": ("cli/", "verbs/"),
    "exit": (),
    "quit": (),
    "sys.exit": ("entry/", "cli/", "__main__.py"),
    # The last ones end a process of their own, which must not run our way out.
    "os._exit": (
        "entry/",
        "cli/",
        "verbs/",
        "__main__.py",
        "git/previous_hook.py",
        "proc/bounded.py",
        "features/remote/worker.py",
    ),
    "sys.stdout": ("entry/", "cli/", "verbs/", "__main__.py"),
    "sys.stderr": ("entry/", "cli/", "verbs/", "__main__.py"),
    "sys.stdin": ("entry/", "cli/", "verbs/", "__main__.py"),
    "sys.argv": ("__main__.py", "features/remote/worker.py"),
    # What others have written may be of any depth.
    "tomllib.loads": ("core/limits.py", "config/jsonschema.py"),
    "json.loads": (
        *("core/limits.py", "core/lean_json.py", "report/", "git/diff.py"),
        "features/review/reviewer.py",
    ),
    "os.fork": ("proc/", "git/", "worktree/"),
    "os.kill": ("proc/", "git/", "worktree/", "store/runs.py"),
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


# A number of things of different kinds, as one parameter: each is to be a parameter of its own.
PACKED: set[str] = set()
SAME_NAME: set[str] = set()
IN_A_CIRCLE: set[str] = set()
# declared dependency → why nothing imports it
NOT_IMPORTED = {
    "pre-commit": "it is run, as a program",
    "tree-sitter": "its extension is loaded without the package",
    "tree-sitter-bash": "the same",
}
IMPORTED_AS = {"pyyaml": "yaml"}
# What a feature may have in its folder that cold code finds by its name: core/parts.py.
PARTS = (
    "checks.py",
    "environ.py",
    "guarded.py",
    "handoff.py",
    "keys.py",
    "recovery.py",
    "tools.py",
)


class Import(NamedTuple):
    """One module that a file imports."""

    file: str  # relative to the package
    line: int
    name: str  # dotted
    for_types: bool  # in `if TYPE_CHECKING:`, so that it never happens


class Facts(NamedTuple):
    """What is asked of one file, found in one walk through its tree."""

    imports: list[Import]
    used: list[tuple[int, str]]  # every name that is read, dotted where it is `module.name`
    classes: list[str]
    packed: list[str]  # parameters that are tuples of unlike things
    texts: set[str]


@functools.cache
def _facts() -> dict[str, Facts]:
    return {module.path.removeprefix("gitgates/"): _read(module) for module in _modules()}


def _modules() -> list[size.Module]:
    return size.read_modules(ROOT)


@functools.cache
def _importers() -> dict[str, set[str]]:
    return size.importers(_modules())


def _read(module: size.Module) -> Facts:
    file = module.path.removeprefix("gitgates/")
    facts = Facts([], [], [], [], set())
    left: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while left:
        node, typed = left.pop()
        in_body: list[ast.stmt] = []
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=in_body):
                pass
            case ast.Import() | ast.ImportFrom():
                facts.imports.extend(Import(file, node.lineno, n, typed) for n in _imported(node))
                facts.used.extend(_imported_names(node))
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                facts.used.append((node.lineno, f"{owner}.{name}"))
            case ast.Name(id=name, ctx=ast.Load()):
                facts.used.append((node.lineno, name))
            case ast.Constant(value=str(text)):
                facts.texts.add(text)
            case ast.ClassDef(name=name):
                facts.classes.append(name)
            case ast.FunctionDef(name=name, args=args):
                every = (*args.posonlyargs, *args.args, *args.kwonlyargs)
                facts.packed.extend(f"{name}({a.arg})" for a in every if _is_packed(a.annotation))
            case _:
                pass
        left += [(below, typed or below in in_body) for below in ast.iter_child_nodes(node)]
    return facts


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, f"line {node.lineno}: a relative import hides its layer"
    # `from gitgates import entry` imports a package, `from gitgates.core import …` too.
    if node.module == "gitgates":
        return [f"gitgates.{alias.name}" for alias in node.names]
    return [node.module or ""]


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[tuple[int, str]]:
    owner = node.module if isinstance(node, ast.ImportFrom) else None
    return [(node.lineno, f"{owner}.{alias.name}") for alias in node.names] if owner else []


def _is_packed(annotation: ast.expr | None) -> bool:
    """Return whether a parameter is a tuple of unlike things, such as `tuple[Session, str]`."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return _is_packed(left) or _is_packed(right)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
            kinds = {ast.unparse(part) for part in parts}
            return "..." not in kinds and len(kinds) > 1
        case _:
            return False


def _all_imports() -> list[Import]:
    return [found for facts in _facts().values() for found in facts.imports]


def _is_in(file: str, places: tuple[str, ...]) -> bool:
    """Return whether a file is in a place; the verbs of features are those of `cli/`."""
    of_verb = file.startswith("features/") and file.split("/")[2].startswith("cli")
    return file.startswith(places) or (of_verb and "cli/" in places)


def test_no_feature_imports_another() -> None:
    wrong = set()
    for file, line, name, _for_types in _all_imports():
        own, other = file.split("/"), name.split(".")
        if own[0] == "features" and other[1:2] == ["features"] and own[1] != other[2]:
            wrong.add(f"gitgates/{file}:{line}: imports {name}")
    assert wrong == set()


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


@pytest.mark.parametrize("name", ONLY_IN)
def test_is_used_only_where_it_belongs(name: str) -> None:
    wrong = [
        f"gitgates/{file}:{line}: {used}"
        for file, facts in _facts().items()
        for line, used in facts.used
        if used == name and not (ONLY_IN[name] and _is_in(file, ONLY_IN[name]))
    ]
    assert wrong == []


@functools.cache
def _own_files() -> dict[Path, list[str]]:
    paths = [path for top in OWN_FOLDERS for path in (ROOT / top).rglob("*.py")]
    return {path: path.read_text().splitlines() for path in paths}


def test_no_function_is_too_long() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name} has {length} lines"
        for path, lines in _own_files().items()
        for line, name, length in _functions(lines)
        if length > LONGEST_FUNCTION
    ]
    assert wrong == []


def _functions(lines: list[str]) -> list[tuple[int, str, int]]:
    """Return the line, name and length of each function, told by indentation alone."""
    found: list[tuple[int, str, int]] = []
    is_open: list[tuple[int, int, str]] = []  # indentation, line, name
    last = 0  # the last line that is not blank
    for number, line in enumerate([*lines, "end"], 1):
        body = line.lstrip()
        if not body or body[0] in ")]}":  # a signature of several lines ends where it began
            continue
        indent = len(line) - len(body)
        while is_open and is_open[-1][0] >= indent:
            _indent, begun, name = is_open.pop()
            found.append((begun, name, last - begun + 1))
        if body.startswith(("def ", "async def ")):
            is_open.append((indent, number, body.partition("def ")[2].partition("(")[0]))
        last = number
    return found


def _hold(found: AbstractSet[str], known: AbstractSet[str]) -> None:
    assert sorted(found - known) == []
    assert sorted(known - found) == [], "no exception any more: take it out of the list above"


def test_no_two_classes_have_one_name() -> None:
    counts = collections.Counter(name for facts in _facts().values() for name in facts.classes)
    _hold({name for name, count in counts.items() if count > 1}, SAME_NAME)


def test_no_parameter_is_a_tuple_of_unlike_things() -> None:
    _hold({packed for facts in _facts().values() for packed in facts.packed}, PACKED)


def test_every_module_is_imported() -> None:
    """By another one, or by its name: verbs, and the modules of coding agents."""
    by_name = {text for facts in _facts().values() for text in facts.texts}
    by_name |= {f"gitgates.hosts.agents.{name}" for name in AGENTS}
    unused = [
        module.name
        for module in _modules()
        if not _importers()[module.name]
        and not module.path.endswith(("__init__.py", "__main__.py"))
        and module.name not in by_name
        and not (
            module.path.startswith(("gitgates/cli/", "gitgates/features/")) and _has_command(module)
        )
        and module.path.rpartition("/")[2] not in PARTS
    ]
    _hold({*unused}, set())


def _has_command(module: size.Module) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "command" for node in module.tree.body
    )


def test_modules_do_not_import_one_another_in_a_circle() -> None:
    by = _importers()
    left = dict(by)
    while ends := [
        name
        for name in left
        if not any(other in left for other in by[name])
        or not any(name in by[other] for other in left)
    ]:
        for name in ends:
            del left[name]
    _hold({name.removeprefix("gitgates.") for name in left}, IN_A_CIRCLE)


def test_every_declared_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]}
    imported = {found.name.partition(".")[0] for found in _all_imports()}
    unused = {name for name in declared if IMPORTED_AS.get(name, name) not in imported}
    _hold(unused, NOT_IMPORTED.keys())


def test_every_rule_that_is_broken_has_its_reason_beside_it() -> None:
    mark = re.compile(r"# [n]oqa(?!: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* - \S)")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, lines in _own_files().items()
        if not path.name.startswith("weakening_")  # samples of what others write
        for number, line in enumerate(lines, 1)
        if mark.search(line)
    ]
    assert wrong == []


def test_each_module_can_be_loaded() -> None:
    """As the first one, too, since none imports another in a circle."""
    program = """\
import importlib, pkgutil
import gitgates
names = [module.name for module in pkgutil.walk_packages(gitgates.__path__, "gitgates.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert int(done.stdout) > 50
