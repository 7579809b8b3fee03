"""`gitgates convert` takes other tools' gates over as they were."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from case_support import mixed

from gitgates.cli.convert import command
from gitgates.config import load
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.types import Config, Gate, Hook


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return folder


def convert(root: Path, content: str | bytes, name: str = "gates.json", *args: str) -> None:
    raw = content.encode() if isinstance(content, str) else content
    (root / name).write_bytes(raw)
    assert command.main([*args, name], standalone_mode=False) == 0


def config(root: Path) -> Config:
    found, problems = load.inspect(str(root))
    assert found is not None
    assert [problem for problem in problems if not problem.deferred] == []
    return found


STRICT = {
    "gates": {
        "check": {
            "description": "Quality checks",
            "command": "mise run check",
            "on_pass": "CONTINUE",
            "on_fail": "BLOCK",
        },
        "test": {
            "description": "Test suite",
            "command": "mise run test",
            "on_pass": "CONTINUE",
            "on_fail": "BLOCK",
        },
    }
}
PERMISSIVE = {
    "gates": {
        "check": {"command": "mise run check", "on_pass": "CONTINUE", "on_fail": "CONTINUE"},
        "test": {"command": "mise run test", "on_pass": "CONTINUE", "on_fail": "CONTINUE"},
    }
}
PIPELINE = {
    "gates": {
        "format": {"command": "mise run format", "on_pass": "check", "on_fail": "STOP"},
        "check": {"command": "mise run check", "on_pass": "test", "on_fail": "BLOCK"},
        "test": {"command": "mise run test", "on_pass": "CONTINUE", "on_fail": "BLOCK"},
    },
    "hooks": {"SubagentStop": {"gates": ["format"]}},
}
SUBROUTINE = {
    "gates": {
        "check": {"command": "mise run check", "on_pass": "reticulate"},
        "reticulate": {"description": "Reticulate splines", "command": "mise run reticulate"},
        "test": {"command": "mise run test"},
    },
    "hooks": {"SubagentStop": {"gates": ["check", "test"]}},
}
CRITICAL = {
    "gates": {"security-scan": {"command": "mise run security-scan", "on_fail": "STOP"}},
}
UNUSUAL = {"gates": {"check": {"command": "mise run check", "on_pass": "BLOCK", "on_fail": "STOP"}}}
WHOLE = {
    "gates": {
        **UNUSUAL["gates"],
        "test": {"description": "Run project test suite", "command": "mise run test"},
        "build": {"command": "mise run build", "on_fail": "CONTINUE"},
        "format": {"command": "mise run format", "on_pass": "check", "on_fail": "STOP"},
    },
    "hooks": {
        "PostToolUse": {
            "enabled_tools": ["Edit", "Write", "mcp__serena__replace_symbol_body"],
            "gates": ["check"],
        },
        "SubagentStop": {
            "enabled_agents": ["rust-engineer", "code-reviewer"],
            "gates": ["check", "test"],
        },
    },
}
UNDEFINED = {
    "gates": {"check": {"command": "c", "on_fail": "nowhere"}, "empty": {"description": "?"}},
    "hooks": {"SubagentStop": {"gates": ["check", "missing", "empty"]}},
}


def expected(document: dict[str, Any]) -> tuple[tuple[Gate, ...], tuple[Hook, ...]]:
    gates = tuple(Gate(name=name, **table) for name, table in document["gates"].items())
    hooks = []
    for name, table in document.get("hooks", {}).items():
        lists: dict[str, Any] = {key: tuple(value) for key, value in table.items()}
        hooks.append(Hook(name=name, **lists))
    return gates, tuple(hooks)


EXAMPLES = {
    "strict": STRICT,
    "permissive": PERMISSIVE,
    "pipeline": PIPELINE,
    "subroutine": SUBROUTINE,
    "critical": CRITICAL,
    "unusual": UNUSUAL,
    "whole": WHOLE,
    "undefined": UNDEFINED,
}


@pytest.mark.samples(len(EXAMPLES))
@pytest.mark.parametrize(
    ("document", "pyproject"),
    mixed(list(EXAMPLES.values()), (None, "[project]\nname = 'x'")),
    ids=[" in ".join(names) for names in mixed(list(EXAMPLES), ("its own file", "pyproject"))],
)
def test_gates_json_round_trip(root: Path, document: dict[str, Any], pyproject: str | None) -> None:
    if pyproject is not None:
        (root / "pyproject.toml").write_text(pyproject)
    convert(root, json.dumps(document))
    found = config(root)
    assert (found.gates, found.hooks) == expected(document)
    assert (root / "gitgates.toml").exists() is (pyproject is None)


def test_undefined_gates_are_converted_and_told(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    convert(root, json.dumps(UNDEFINED))
    assert capsys.readouterr() == (
        (
            "gitgates.toml: added 2 gates: check, empty; added 1 hook: SubagentStop\n"
            "next: gitgates check\n"
        ),
        (
            "gitgates.toml: gates.check.on_fail: gate `nowhere` is not defined. "
            "Define it with a command, or remove the name.\n"
            'gitgates.toml: gates.empty: has no `command`. Add command = "…" to `empty`.\n'
            "gitgates.toml: hooks.SubagentStop.gates: gate `missing` is not defined. "
            "Define it with a command, or remove the name.\n"
        ),
    )


def test_what_is_left_out_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """{
      "$schema": "x",
      "gates": {
        "lint": {"command": "r", "timeout": 3, "on_pass": null},
        "empty": {"command": "", "on_pass": "CONTINUE"}
      },
      "hooks": {"Stop": {"gates": ["lint"], "matcher": ".*"}}
    }"""
    convert(root, text)
    found = config(root)
    assert found.gates == (Gate(name="lint", command="r"), Gate(name="empty"))
    assert found.hooks == (Hook(name="Stop", gates=("lint",)),)
    told = capsys.readouterr().err.splitlines()
    assert told[:3] == [
        "gates.json: $schema: unknown field; skipped",
        "gates.json: gates.lint.timeout: unknown field; skipped",
        "gates.json: hooks.Stop.matcher: unknown field; skipped",
    ]


def test_what_is_there_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = '[gates.check]\ncommand = "mine"\n\n[hooks.SubagentStop]\ngates = [ "check" ]\n'
    (root / "gitgates.toml").write_text(old)
    convert(root, json.dumps(SUBROUTINE))
    assert (root / "gitgates.toml").read_text() == (
        '[gates.check]\ncommand = "mine"\n\n'
        '[hooks.SubagentStop]\ngates = [ "check", "test" ]\n\n'
        '[gates.reticulate]\ndescription = "Reticulate splines"\n'
        'command = "mise run reticulate"\n\n'
        '[gates.test]\ncommand = "mise run test"\n'
    )
    said, told = capsys.readouterr()
    assert said == (
        "gitgates.toml: added 2 gates: reticulate, test; added to SubagentStop: test\n"
        "next: gitgates check\n"
    )
    assert told == (
        "gitgates.toml: gates.check: already exists with a different value; left unchanged\n"
    )
    convert(root, json.dumps(SUBROUTINE))
    assert capsys.readouterr().out == "gitgates.toml: nothing to add\n"


def test_a_dry_run_writes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(root, json.dumps(UNUSUAL), "gates.json", "--dry-run")
    assert capsys.readouterr() == (
        (
            "--- /dev/null\n+++ b/gitgates.toml\n@@ -0,0 +1,4 @@\n"
            '+[gates.check]\n+command = "mise run check"\n+on_pass = "BLOCK"\n+on_fail = "STOP"\n'
        ),
        "",
    )
    assert [entry.name for entry in root.iterdir()] == ["gates.json"]


QUALITY = """\
headless:
  max_retries: 5  # Maximum quality gate fix attempts

quality_gates:
  - name: "Run unit tests"
    command: "go test ./..."
    timeout: 300 # seconds
  - name: "Type check"
    command: "npm run type-check"
    working_dir: "frontend"
  - name: Validate API schema
    command: "./scripts/validate-schema.sh"
    timeout: 7.5
    working_dir: "./api/"
    env:
      SCHEMA_PATH: "openapi.yaml"
      PORT: 0x10
      STRICT: yes
      EMPTY:
"""


def test_quality_gates(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(root, QUALITY, "forge.yaml")
    found = config(root)
    assert found.gates == (
        Gate(name="Run unit tests", command="go test ./...", timeout_s=300.0),
        Gate(name="Type check", command="npm run type-check", working_dir="frontend"),
        Gate(
            name="Validate API schema",
            command="./scripts/validate-schema.sh",
            timeout_s=7.5,
            working_dir="api",
            env=(
                ("SCHEMA_PATH", "openapi.yaml"),
                ("PORT", "0x10"),
                ("STRICT", "yes"),
                ("EMPTY", ""),
            ),
        ),
    )
    names = ("Run unit tests", "Type check", "Validate API schema")
    assert found.hooks == (Hook("headless", gates=names, strategy="collect", max_retries=5),)
    assert capsys.readouterr().err == ""


def test_quality_gates_that_need_a_change(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
constraints: {}
headless: {max_retries: 0, branch: main}
quality_gates:
  - {name: lint, command: a, timeout: 0, required: true}
  - {name: types, command: b}
"""
    convert(root, text, "x.yml")
    found = config(root)
    names = ("lint", "types")
    assert tuple(gate.name for gate in found.gates) == names
    assert found.hooks == (Hook("headless", gates=names, strategy="collect", max_retries=0),)
    assert capsys.readouterr().err.splitlines() == [
        "x.yml: constraints: unknown field; skipped",
        "x.yml: quality_gates[0].required: unknown field; skipped",
        "x.yml: quality_gates[0].timeout: 0 meant no limit; gitgates' default applies",
        "x.yml: headless.branch: unknown field; skipped",
    ]


def test_quality_gates_in_json(root: Path) -> None:
    gate = {"name": "t", "command": "c", "timeout": 60, "env": {"A": 1, "B": True}}
    convert(root, json.dumps({"quality_gates": [gate]}), "q.json")
    assert config(root).gates == (
        Gate(name="t", command="c", timeout_s=60.0, env=(("A", "1"), ("B", "true"))),
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "a.json: is not valid JSON: Expecting property name"),
        ("a.json", "", "a.json: is not valid JSON: Expecting value"),
        ("a.json", "[" * 100_000, "a.json: is not valid JSON: "),
        ("a.json", "[]", "a.json: expected a gates.json (`gates`, `hooks`) or a quality_gates"),
        ("a.json", '{"a": 1}', "a.json: expected a gates.json (`gates`, `hooks`) or a quality_"),
        ("a.json", '{"gates": []}', "a.json: gates: got [], expected one table per name"),
        ("a.json", '{"gates": {"a": 3}}', "a.json: gates.a: got 3, expected a table"),
        (
            "a.json",
            '{"gates": {"a": {"command": 3, "on_fail": 1}}, "hooks": {"Stop": {"gates": "a"}}}',
            (
                "a.json: gates.a.command: got 3, expected a shell command in quotes, or an array "
                "of a program and its arguments\n"
                "a.json: gates.a.on_fail: got 1, expected CONTINUE, BLOCK, STOP, or the name of "
                "a gate\na.json: hooks.Stop.gates: got "
            ),
        ),
        (
            "a.json",
            (
                '{"gates": {"a": {"command": "a", "on_pass": "b"}, '
                '"b": {"command": "b", "on_pass": "a"}}}'
            ),
            "a.json: gates.a: its chain of actions is a cycle: `a` → `b` → `a`",
        ),
        ("a.json", '{"gates": {"a": {"command": "\\ud800"}}}', "a.json: a lone surrogate"),
        ("a.json", b"\xff", "a.json: cannot be read: byte 1 is not UTF-8"),
        ("a.yml", "a: [", "a.yml: is not valid YAML: while parsing"),
        ("a.yml", "a: 1\n---\nb: 2\n", "a.yml: is not valid YAML: expected a single document"),
        ("a.yml", "x: !!python/name:os.system", "a.yml: expected a gates.json"),
        ("a.yml", "", "a.yml: expected a gates.json"),
        ("a.yml", "just text", "a.yml: expected a gates.json"),
        ("a.yml", "quality_gates: 3", "a.yml: quality_gates: expected a list of gates"),
        (
            "a.yml",
            "headless: 3\nquality_gates: [x, {command: a}, {name: b, timeout: fast, env: 3}]",
            (
                "a.yml: quality_gates[0]: expected a gate with `name` and `command`\n"
                'a.yml: quality_gates[1].name: expected a string; add one such as name: "Lint"\n'
                "a.yml: headless: expected a mapping such as max_retries: 3\n"
                'a.yml: gates.b.env: got "3", expected a table of names and strings. '
                'Try env = { NAME = "value" }.\n'
                'a.yml: gates.b.timeout: got "fast", expected seconds or "30s"'
            ),
        ),
        (
            "a.yml",
            "quality_gates: [{name: a, command: a, working_dir: /tmp}]",
            'a.yml: gates.a.working_dir: got "/tmp", expected a folder inside the repository',
        ),
        ("a.yml", "&a [*a]", "a.yml: is not valid YAML: its aliases expand to more"),
        (
            "a.json",
            '{"gates": {"review": {"command": "r"}}}',
            "a.json: gates.review: `review` is the name of an action or of a built-in policy",
        ),
        (
            "a.yml",
            "quality_gates: [{name: 'a, b', command: c}, {name: d, command: e}, {name: d}]",
            (
                "a.yml: quality_gates[2].name: `d` is already used by another gate\n"
                'a.yml: gates."a, b": got "a, b", expected a name without a comma'
            ),
        ),
        (
            "a.json",
            '{"hooks": {"PreTool": {"gates": []}}}',
            "a.json: hooks.PreTool: unknown hook `PreTool`",
        ),
        (
            "a.yml",
            "quality_gates: " + "x" * 1024 * 1024,
            "a.yml: cannot be read: it is longer than 1024 KiB",
        ),
    ],
)
def test_a_file_that_makes_no_sense(
    root: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        convert(root, content, name)
    assert str(caught.value).startswith(message)
    assert [entry.name for entry in root.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone.json", "No such file or directory"),
        (".", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        command.main([name], standalone_mode=False)


def test_a_configuration_with_problems_is_left(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool")
    with pytest.raises(ConfigError, match=r"pyproject.toml: is not valid TOML"):
        convert(root, json.dumps(STRICT))
    assert (root / "pyproject.toml").read_text() == "[tool"


def test_nothing_to_convert_is_an_error() -> None:
    with pytest.raises(UsageError, match="found nothing to convert"):
        command.main([], standalone_mode=False)
