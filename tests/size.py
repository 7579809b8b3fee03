"""How heavy the code is: what `make size` prints of the package, and of five runs of it.

    python tests/size.py [CHECKOUT]

Counted of the source: modules, lines, records, names that two classes have, the longest files and
functions, modules that one other of their own package imports. Counted of real runs, in a process
with a profile function: modules loaded, calls of our functions, how often a call goes to another
file than the one before, kinds of record made.
"""

from __future__ import annotations

import ast
import collections
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_MOST = 10  # files and names of each list

CONFIG = """\
[tool.gitgates.gates.first]
command = "true"
[tool.gitgates.gates.second]
command = "true"
[tool.gitgates.hooks.pre-commit]
gates = ["first", "second"]
[tool.gitgates.hooks.Stop]
gates = ["first", "second", "review"]
[tool.gitgates.review]
mode = "require"
"""
INTENTS = """\
[[active_intents]]
id = "INT-1"
title = "Numbers"
status = "IN_PROGRESS"
owned_scope = ["*.py"]
"""
# os._exit is how a hook leaves; a verb ends by SystemExit.
PROFILED = """
import json, os, sys
OURS = os.path.join(os.environ["CHECKOUT_ABS"], "gitgates") + os.sep
calls, switches, before, kinds = 0, 0, "", set()

def note(frame, event, _arg):
    global calls, switches, before
    code = frame.f_code
    if event != "call" or not code.co_flags & 1 or not code.co_filename.startswith(OURS):
        return  # 1: a function, and no body of a class or module
    if code.co_filename.endswith("pyc_import.py"):
        return  # it does for our modules what Python's own import does for all
    if code.co_name == "__new__" and "cls" in frame.f_locals:
        kinds.add(frame.f_locals["cls"].__name__)
    calls += 1
    switches += code.co_filename != before
    before = code.co_filename

def leave_with(status, leave=os._exit):
    sys.setprofile(None)
    modules = sorted(name for name in sys.modules if name.partition(".")[0] == "gitgates")
    with open(os.environ["TOLD_ABS"], "w") as file:
        json.dump([modules, calls, switches, sorted(kinds)], file)
    leave(status)

os._exit = leave_with
sys.path.insert(0, os.environ["CHECKOUT_ABS"])
sys.argv[0] = "gitgates"
sys.setprofile(note)
from gitgates.__main__ import main
try:
    main()
except SystemExit as end:
    leave_with(end.code)
"""


class Module(NamedTuple):
    """One file of the package."""

    path: str  # relative to the checkout
    name: str  # dotted
    lines: int
    tree: ast.Module


class Trip(NamedTuple):
    """What one profiled run did."""

    modules: list[str]
    calls: int
    switches: int
    records: list[str]


@functools.cache
def read_modules(checkout: Path) -> list[Module]:
    """Return every module of the package."""
    found = []
    gc.disable()  # so many nodes: it would look at each of them several times, for nothing
    for path in sorted((checkout / "gitgates").rglob("*.py")):
        place = path.relative_to(checkout)
        name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
        text = path.read_bytes()
        found.append(Module(str(place), name, text.count(b"\n"), ast.parse(text)))
    gc.freeze()
    gc.enable()
    return found


@functools.cache
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """Return every node of a tree."""
    return [*ast.walk(tree)]


def _classes(modules: list[Module]) -> list[tuple[str, ast.ClassDef]]:
    return [
        (module.path, node)
        for module in modules
        for node in nodes_of(module.tree)
        if isinstance(node, ast.ClassDef)
    ]


def record_names(modules: list[Module]) -> list[str]:
    """Return the name of each subclass of Record."""
    return [
        node.name
        for _path, node in _classes(modules)
        if any(ast.unparse(base).rpartition(".")[2] == "Record" for base in node.bases)
    ]


def repeated_names(modules: list[Module]) -> dict[str, list[str]]:
    """Return each name that more than one class has, and the files of those."""
    files: dict[str, list[str]] = collections.defaultdict(list)
    for path, node in _classes(modules):
        files[node.name].append(path)
    return {name: paths for name, paths in sorted(files.items()) if len(paths) > 1}


def importers(modules: list[Module]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    known = {module.name for module in modules}
    found: dict[str, set[str]] = {name: set() for name in known}
    for module in modules:
        for node in nodes_of(module.tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                parts = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [part if part in known else node.module for part in parts]
            for name in known.intersection(names) - {module.name}:
                found[name].add(module.name)
    return found


def single_importers(modules: list[Module]) -> list[str]:
    """Return the modules that only one other imports, which is of the same package."""
    return sorted(
        name
        for name, by in importers(modules).items()
        if len(by) == 1 and name.rpartition(".")[0] == next(iter(by)).rpartition(".")[0]
    )


def functions(modules: list[Module]) -> list[tuple[int, str]]:
    """Return the length of each function in lines, and where it is."""
    return [
        ((node.end_lineno or 0) - node.lineno + 1, f"{module.path}:{node.lineno} {node.name}")
        for module in modules
        for node in nodes_of(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


class Profiled:
    """A repository in which the package is run with a profile function."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._folder = folder / "repository"
        self._told = folder / "told"
        held_back = ("GIT", "CLAUDE", "PRE_COMMIT", "SKIP")
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(held_back)},
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "CHECKOUT_ABS": str(checkout.resolve()),
            "TOLD_ABS": str(self._told),
        }
        self._run("git", "init", "-q", "-b", "main", str(self._folder), cwd=folder)
        (self._folder / "pyproject.toml").write_text(CONFIG)
        self._run("git", "add", ".")
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        self._run("git", *author, "commit", "-qm", "first")

    def _run(self, *argv: str, cwd: Path | None = None, stdin: str = "") -> None:
        subprocess.run(
            argv, cwd=cwd or self._folder, env=self._env, input=stdin.encode(), check=False,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def trip(self, *args: str, stdin: str = "") -> Trip:
        """Run a verb, and return what it did."""
        self._run(sys.executable, "-c", PROFILED, *args, stdin=stdin)
        return Trip(*json.loads(self._told.read_text()))

    def event(self, name: str, **fields: object) -> Trip:
        """Have an agent's event handled."""
        known = {"session_id": "size", "cwd": str(self._folder), "hook_event_name": name}
        return self.trip("agent-hook", "claude", stdin=json.dumps({**known, **fields}))

    def git_hook(self) -> Trip:
        """Run a hook of git with two gates that pass, its configuration known."""
        (self._folder / "a.py").write_text("a = 1\n")
        self._run("git", "add", ".")
        for _ in ("cold", "warm"):
            trip = self.trip("git-hook", ".git/hooks/pre-commit", "pre-commit")
        return trip

    def stop(self) -> Trip:
        """Let an agent stop that has changed what was not reviewed: it is held back."""
        self.event("SessionStart", source="startup")
        self.event("UserPromptSubmit", prompt="#review write it")
        (self._folder / "b.py").write_text("".join(f"b{n} = {n}\n" for n in range(200)))
        wrote = {"tool_name": "Write", "tool_input": {"file_path": str(self._folder / "b.py")}}
        self.event("PostToolUse", **wrote)
        return self.event("Stop", stop_hook_active=False)

    def status(self) -> Trip:
        """Ask what there is to review."""
        return self.trip("review", "status", "--session", "size")

    def intent_select(self) -> Trip:
        """Select an intent."""
        with (self._folder / "pyproject.toml").open("a") as file:
            file.write('[tool.gitgates.intents]\nfile = "intents.toml"\n')
        (self._folder / "intents.toml").write_text(INTENTS)
        self._run("git", "add", ".")
        self._run(
            "git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "b"
        )
        return self.trip("intent", "select", "INT-1", "--session", "size")

    def init(self) -> Trip:
        """Propose gates."""
        return self.trip("init", "--dry-run")


def trips(checkout: Path) -> dict[str, Trip]:
    """Return what five runs did, by their names."""
    with tempfile.TemporaryDirectory(prefix="gitgates-size-") as folder:
        profiled = Profiled(checkout, Path(folder).resolve())
        return {
            "git hook, two gates": profiled.git_hook(),
            "a blocked Stop with review": profiled.stop(),
            "`review status`": profiled.status(),
            "`intent select`": profiled.intent_select(),
            "`init`": profiled.init(),
        }


def source_rows(modules: list[Module]) -> list[tuple[str, Any]]:
    """Return what is counted of the source, by its name."""
    lengths = [length for length, _where in functions(modules)]
    repeated = repeated_names(modules)
    longest = max(functions(modules))
    return [
        ("modules", len(modules)),
        ("lines", sum(module.lines for module in modules)),
        ("records", len(record_names(modules))),
        ("names of more than one class", f"{len(repeated)}  {' '.join(repeated)}".rstrip()),
        ("modules with one importer, in their package", len(single_importers(modules))),
        ("functions", len(lengths)),
        ("median function", f"{statistics.median(lengths):g} lines"),
        ("longest function", f"{longest[0]} lines  {longest[1]}"),
    ]


def main() -> None:
    """Print it all."""
    checkout = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    modules = read_modules(checkout)
    for name, value in source_rows(modules):
        print(f"{name:46}{value}")
    packages: collections.Counter[str] = collections.Counter()
    for module in modules:
        packages[Path(module.path).parts[1]] += module.lines
    print(f"\n{'lines by package':30}largest files")
    largest = sorted(modules, key=lambda module: -module.lines)
    for (name, lines), module in zip(packages.most_common(), largest, strict=False):
        print(f"{lines:6} {name:23}{module.lines:6} {module.path}")
    print(f"\n{'one run':30}{'modules':>9}{'calls':>9}{'switches':>10}{'records':>9}")
    for name, trip in trips(checkout).items():
        kinds = len(trip.records)
        print(f"{name:30}{len(trip.modules):9}{trip.calls:9}{trip.switches:10}{kinds:9}")


if __name__ == "__main__":
    main()
