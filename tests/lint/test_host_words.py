"""A host's words are known to `hosts/` alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import size

from gitgates.hosts.agents.claude import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = HOST.PROTOCOL.events
ROOT = Path(__file__).resolve().parents[2]
# Names that are words of English, too, count where they stand alone, or as a key of settings.
ALONE = {*EVENTS, *HOST.tools}
WITHIN = re.compile(
    rf"\b(?:{'|'.join(sorted({*EVENTS} - {'Stop'}))})\b"
    r"|\bhooks\.Stop\b|\bCLAUDE_\w+|\bCLAUDECODE\b|\bANTHROPIC_\w+|\.claude\b"
    r"|hook_event_name|hookSpecificOutput|permissionDecision|tool_use_id\b\""
)
# What still knows some, or has to, and why.
KNOWN = {
    "core/lifecycle.py": "the words of the configuration for an agent's events",
}


def _docstrings(tree: ast.Module) -> set[int]:
    return {
        id(node.body[0].value)
        for node in size.nodes_of(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def _words(module: size.Module) -> Iterator[str]:
    left_out = _docstrings(module.tree)
    for node in size.nodes_of(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value.decode() if isinstance(node.value, bytes) else node.value
            if id(node) not in left_out and (text in ALONE or WITHIN.search(text)):
                yield f"{module.path}:{node.lineno}: {text!r}"


def _others() -> list[size.Module]:
    modules = size.read_modules(ROOT)
    return [module for module in modules if not module.path.startswith("gitgates/hosts/")]


def test_no_other_module_knows_a_hosts_words() -> None:
    found = {m.path.removeprefix("gitgates/"): [*_words(m)] for m in _others()}
    wrong = [line for file, lines in found.items() if file not in KNOWN for line in lines]
    assert wrong == []
    assert [file for file in KNOWN if not found.get(file)] == [], "no exception any more"


def test_no_other_module_imports_a_host_of_an_agent() -> None:
    modules = re.compile(r"\bgitgates\.hosts\.agents\b|hosts import claude")
    wrong = [m.path for m in _others() if modules.search((ROOT / m.path).read_text())]
    assert wrong == []
