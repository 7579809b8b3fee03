"""Sessions of nox. The file is parsed, never run."""

from __future__ import annotations

import ast
import shlex
import warnings

from gitgates.discover.task import BadFile, Project, Task
from gitgates.discover.words import PYTHON

FILES = ("noxfile.py",)


def find(name: str, project: Project) -> list[Task]:
    """Return the sessions of a noxfile."""
    text = project.texts[name].removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in it is not our business
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadFile(f"is no valid Python: {error}") from error
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        Task(
            name=session,
            command=f"nox -s {shlex.quote(session)}",
            source=f"{name}: session {session}",
            scope=PYTHON,
            body=_commands(function),
        )
        for function in functions
        if (session := _session_name(function))
    ]


def _commands(function: ast.AST) -> str:
    """Return what a session runs, a line each, as far as it is written down as text."""
    lines = []
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "run":
            continue
        words = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        lines.append(" ".join(str(word) for word in words))
    return "\n".join(lines)


def _session_name(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    for decorator in function.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(call, "attr", getattr(call, "id", "")) != "session":
            continue
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
        return function.name
    return ""
