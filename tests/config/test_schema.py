"""The JSON Schema: at one with the parser, and of use to validate-pyproject."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from click.testing import CliRunner
from conftest import SRC
from hypothesis import given
from hypothesis import strategies as st
from validate_pyproject import api
from validate_pyproject.errors import ValidationError

from gitgates.cli.check import schema
from gitgates.config import FILES
from gitgates.config.jsonschema import get_schema
from gitgates.config.keys import GATE_KEYS, HOOK_KEYS, RESERVED_GATE_NAMES, TOP_KEYS
from gitgates.config.keys import tables as features
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.guarded import rules_by_name
from gitgates.core.lifecycle import HOOK_POINTS

# key → values that the parser takes
GOOD: dict[str, list[Any]] = {
    "requires": [">=0.1", "== 0.1.0", " > 0.0.9 , != 0.2 ,<=3"],
    "root": [True, False],
    "own_files": ["off", "warn", "block"],
    "members": [[], ["web", "./packages/*/", "libs/py-*-x/src"]],
    "extends": [[], ["../shared/gates.toml", "a.toml"]],
    "jobs": [0, 4],
    "max_output": [1, 4096, "64 KiB", "1MiB", "10"],
    "max_log": [1, 4096, "64 KiB", "16 MiB"],
    "description": ["", "a text", "two\nlines"],
    "command": ["true", " ruff check ", ["ruff", "check"], ["printf", ""]],
    "pre-commit": [True, False, ["ruff"], ["ruff", "mypy"]],
    "runner": ["pre-commit", "prek"],
    "working_dir": [".", "frontend", "a/b/", "./c"],
    "env": [{}, {"A": "b"}, {"A": "", "B_C": "x=y"}],
    "timeout": [1, 0.5, "30s", "2m", "1h30m", "1 h 30 m"],
    "on_pass": ["CONTINUE", "BLOCK", "STOP", "other"],
    "on_fail": ["CONTINUE", "BLOCK", "STOP", "another gate"],
    "files": [[], ["*.py"], ["src/", "!src/vendor/"]],
    "exclude": [[], ["vendor/"]],
    "types": [[], ["python"], ["text", "!executable"]],
    "types_or": [[], ["python", "pyi"]],
    "pass_files": [True, False],
    "pass_hook_input": [True, False],
    "priority": ["critical", "high", "normal", "low"],
    "writes": [True, False],
    "required": [True, False],
    "resources": [{}, {"db": 2, "port:5432": 1}],
    "gates.resources": [[], ["db", "port:5432"]],
    "retry": [0, 1, 9],
    "quarantine_until": [date(2027, 1, 31)],
    "restage": [False],
    "verify": [False],
    "git_env": ["auto", "commit", "clean"],
    "gates": [[], ["a", "b c"]],
    "strategy": ["sequence", "collect"],
    "unstaged": ["checkout", "keep"],
    "setup": ["uv sync", ["uv sync", "npm ci"], []],
    "copy": [[], ["a", "b/c"]],
    "worktree.agents": [True, False],
    "enabled_tools": [[], ["Edit"]],
    "enabled_agents": [[], ["rust-engineer"]],
    "max_retries": [0, 7],
    "on_exhausted": ["allow", "stop"],
    "breaker": [{}, {"prompt": 3}, {"prompt": 1, "session": 100}],
    "keep_runs": [0, 200],
    "cloud_hooks": [True, False],
    "artifacts_dir": ["out", "build/gates"],
    "pass_env": [[], ["ANTHROPIC_API_KEY"]],
    "failures": ["pytest", "^FAIL .*"],
    "observe": [True, False],
    "baseline": [True, False],
    "metrics": [{}, {"coverage": {"pattern": r"TOTAL.*?(\d+)%", "better": "higher"}}],
    "ratchet": [False],
    "tolerance": [0, 0.0],
    "examples": [{"fail": ["tests/bad.py"], "pass": ["tests/good", "tests/good.py"]}],
    "terminal": [True, False],
    "reuse": [True, False, "declared"],
    "scratch": [[], [".coverage", "*.log"]],
    "inputs": [[], ["src/"], ["*.py", "!vendor/"]],
    "env_inputs": [[], ["LANG", "RUFF_*"]],
    "reads": [[], ["../ruff.toml", "~/.config/x", "/etc/x"]],
    "max_age": [1, 0.5, "1h"],
    "remote": [True, False],
    "not_secret": [[], ["tests/keys/"]],
    "ignored_inputs": [[], ["node_modules", "web/.venv"]],
    "outputs": [[], ["coverage.xml"]],
    "image": ["docker://a@sha256:b"],
    "keep": [1, 0.5, "12h", "14d"],
    "max_size": [1, "2 GiB", "1G"],
    "max_file": [4096, "50 MiB"],
    "weight": [1, 8],
    "after": [[], ["other"]],
    "parallel": [False],
    "fail_fast": [True, False],
    "agent": ["claude", "codex", "hermes"],
    "agent_args": [[], ["--model", "x"]],
    "max_files": [0, 3],
    "max_lines": [0, 100],
    "max_cost": [0, 0.5, 20],
    "client_retries": [0, 6],
    "retry_wait": [1, 0.5, "10s"],
    "max_tokens": [0, 100000],
    "allow": [[], ["src/"]],
    "deny": [[], ["*.lock"]],
    "mode": ["remind", "require", "off"],
    "prefix": ["", "#review", "#r"],
    "weakened": ["tell", "block", "off"],
    "min_lines": [0, 40, 0.5],
    "min_files": [0, 5, 2.5],
    "weights": [{}, {"code": 2}, {"code": 1, "tests": 0.5, "documentation": 0}],
    "tests": [[], ["spec/", "!spec/support/"]],
    "documentation": [[], ["*.adoc"]],
    "generated": [[], ["*.snap"]],
    "critical": [[], ["auth/"]],
    "ignore": [[], ["*.lock"]],
    "skills": [[], ["kit:review"]],
    "agents": [[], ["code-reviewer", "kit:*"]],
    "reviewer": ["reviewer", "kit:reviewer"],
    "reviewer_model": ["opus", "inherit"],
    "reviewer_commands": [[], ["git diff"]],
    "second_opinions": [[], ["codex exec -"]],
    "opinion_timeout": [1, 0.5, "10m"],
    "file": [".orchestration/active_intents.yaml", "intents.toml", "./a/b.yml"],
    "ask": [[], ["migrations/**"]],
    "ttl": [1, 0.5, "30m"],
    "trace.mode": ["auto", "on", "off"],
    "enabled": [True, False],
    "context": [1, 4096, "8 KiB"],
    "id": ["a", "bd-adv-pre_commit.2"],
    "title": ["Run the tests", " a "],
    "status": ["open", "pinned", "closed", "tombstone"],
    "advice.priority": [0, 4],
    "created_at": ["2026-01-31", "2026-01-31T12:00:00Z"],
    "rig": ["beads"],
    "role": ["polecat"],
    "advice.agent": ["toast", "kit:reviewer"],
    "hook_command": ["make test", "x" * 1000],
    "hook_trigger": ["session-end", "before-commit", "before-push", "before-handoff"],
    "hook_timeout": [0, 1, 300, 1.5, "2m"],
    "hook_on_failure": ["block", "warn", "ignore"],
    "verdicts": ["", "https://cache.example.com/a/b/", "http://[::1]:8080", "https://localhost"],
    "write": ["ci", "always", "never"],
    "execution": ["", "grpcs://build.example.com:443", "grpc://[::1]:8980"],
    "instance": ["", "main"],
    "platform": [{}, {"OSFamily": "linux"}],
    "fallback": ["local", "fail"],
    "ca": ["", "ci/ca.pem"],
    "cert": ["", "~/client.pem"],
    "key": ["", "~/client.key"],
    "netrc": ["", "/run/secrets/netrc"],
    "trust": [[], ["ci@example.com", "*@example.com"], {"signers": ["a"], "agents": False}],
    "allowed_signers": ["", ".github/allowed_signers"],
    "push": [True, False],
    "target": ["main", "release/1"],
    "method": ["merge", "rebase", "squash"],
    "hook": ["pre-push", "pre-commit", "manual"],
    "batch": [1, 8],
    "land.remote": ["origin"],
    "conflicts": [True, False],
}
GOOD |= {name: list(rule.answers) for name, rule in rules_by_name().items()}
GOOD["lost_work"] += [{"git clean *": "ask", "*": "off"}, {}]
Rows = list[tuple[str, Callable[[Any], dict[str, Any]]]]
Accepts = Callable[[object], bool]
# A value of each type of TOML; which of them are wrong types for a key, the good ones tell.
TYPES: list[Any] = [True, 7, 1.5, "text", ["text"], [7], {"A": "text"}, {"A": 7}, [["text"]]]


@pytest.fixture(scope="module", name="accepts")
def _accepts() -> Accepts:
    validate = fastjsonschema.compile(get_schema())

    def ask(table: object) -> bool:
        try:
            validate(table)
        except fastjsonschema.JsonSchemaException:
            return False
        return True

    return ask


def parser_accepts(table: dict[str, Any]) -> bool:
    _config, problems = parse((Document("gitgates.toml", (), table),))
    return not [problem for problem in problems if not problem.deferred]


def tables(*, hooks: int | None = None) -> Rows:
    """Return each key with what makes a table of settings of a value of it.

    `hooks`: those of a hook in so many of the hooks that have it; without, in each.
    """

    def top(name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {name: value}

    def gate(name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {"gates": {"g": {name: value}}}

    def hook(name: str, hook: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {"hooks": {hook: {name: value}}}

    def section(table: str, name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {table: {name: value}}

    def advice(name: str) -> Callable[[Any], dict[str, Any]]:
        hook = {"hook_command": "true", "hook_trigger": "before-push"}
        beside = hook if name.startswith("hook_") else {}
        return lambda value: {"advice": [{"title": "a", **beside, name: value}]}

    found = [(key.name, top(key.name)) for key in TOP_KEYS]
    for one in features().values():
        for key in one.keys:
            whole = f"{one.name}.{key.name}"  # where another table has a key of that name
            make = advice(key.name) if one.id_of else section(one.name, key.name)
            found.append((whole if whole in GOOD else key.name, make))
    for key in GATE_KEYS:
        whole = f"gates.{key.name}"
        found.append((whole if whole in GOOD else key.name, gate(key.name)))
    found += [
        (key.name, hook(key.name, point))
        for key in HOOK_KEYS
        for point in [*(key.only_in or HOOK_POINTS)][:hooks]
    ]
    return found


def test_samples_cover_every_key() -> None:
    assert set(GOOD) == {name for name, _make in tables()}


# What a key of a hook takes is the same in each hook: two show that. The others are thorough.
FEW = tables(hooks=2)
THOROUGH = pytest.mark.thorough
both = pytest.mark.parametrize(
    "rows", [pytest.param(FEW, id="few"), pytest.param(tables(), id="all", marks=THOROUGH)]
)


@both
def test_schema_accepts_what_the_parser_accepts(rows: Rows, accepts: Accepts) -> None:
    refused = [
        (name, value, by.__name__)
        for name, make in rows
        for value in GOOD[name]
        for by in (parser_accepts, accepts)
        if not by(make(value))
    ]
    assert refused == []


@both
def test_parser_and_schema_agree_on_types(rows: Rows, accepts: Accepts) -> None:
    wrong = []
    for name, make in rows:
        shapes = [_shape(good) for good in GOOD[name] if good not in ([], {})]
        for value in TYPES:
            fits = _shape(value) in shapes
            by_parser, by_schema = parser_accepts(make(value)), accepts(make(value))
            if fits and not by_parser:
                continue  # the right type, and a value that only the parser knows to be wrong
            if by_parser is not by_schema or (by_schema and not fits):
                wrong.append((name, value, by_parser, by_schema))
    assert wrong == []


def _shape(value: object) -> object:
    if isinstance(value, list):
        return ("list", *{_shape(item) for item in value})
    if isinstance(value, dict):
        return ("dict", *{_shape(item) for item in value.values()})
    return type(value)


REFUSED: list[dict[str, Any]] = [
    {"job": 1},
    {"gates": {"g": {"cmd": "true"}}},
    {"hooks": {"precommit": {}}},
    {"hooks": {"pre-commit": {"max_retries": 1}}},
    {"hooks": {"Stop": {"enabled_tools": ["Edit"]}}},
    {"gates": {"g": {"command": "true", "pre-commit": True}}},
    {"gates": {"a,b": {}}},
    {"gates": {"": {}}},
    {"gates": {" a": {}}},
    {"gates": {"a\n": {}}},
    {"gates": []},
    {"hooks": {"pre-commit": []}},
    {"review": []},
    {"advice": {}},
    {"advice": ["a"]},
    {"advice": [{}]},
    {"advice": [{"title": "a", "titel": "b"}]},
    {"advice": [{"title": "a", "hook_command": "true"}]},
    {"advice": [{"title": "a", "hook_timeout": 30}]},
    {"advice": [{"title": "a", "priority": 5}]},
    {"advice": [{"title": "a", "id": "a b"}]},
    {"remote": {"verdicts": "cache.example.com"}},
    {"remote": {"verdicts": "ftp://cache.example.com"}},
    {"remote": {"execution": "grpc://build.example.com"}},
    {"remote": {"execution": []}},
    {"remote": {"verdicts": "https://me:secret@cache.example.com"}},
    {"remote": {"verdicts": "https://cache.example.com/?a=b"}},
    {"remote": {"execution": "build.example.com:443"}},
    {"remote": {"execution": "grpcs://build.example.com"}},
    {"remote": {"platform": {"cores": 2}}},
    {"remote": {"fallback": "remote"}},
    {"proof": {"trust": "ci@example.com"}},
    {"proof": {"trust": {"signer": ["ci@example.com"]}}},
    {"proof": {"trust": {"agents": "no"}}},
    {"review": {"min_line": 1}},
    {"review": {"weights": {"docs": 1}}},
    {"review": {"weights": {"tests": -1}}},
    {"review": {"min_files": -1}},
    *({"gates": {name: {}}} for name in RESERVED_GATE_NAMES),
    *({"gates": {name.swapcase(): {}}} for name in RESERVED_GATE_NAMES),
]


def test_both_refuse(accepts: Accepts) -> None:
    accepted = [(table, by) for table in REFUSED for by in (parser_accepts, accepts) if by(table)]
    assert accepted == []


def test_pre_commit_false_may_stand_beside_a_command(accepts: Accepts) -> None:
    table = {"gates": {"g": {"command": "true", "pre-commit": False}}}
    assert parser_accepts(table)
    assert accepts(table)


@pytest.mark.nightly
@given(name=st.text(max_size=6))
def test_gate_names_of_the_parser_are_the_schemas(name: str) -> None:
    schema = get_schema()["properties"]["gates"]["propertyNames"]
    if parser_accepts({"gates": {name: {}}}):
        fastjsonschema.validate(schema, name)
    else:
        with pytest.raises(fastjsonschema.JsonSchemaException):
            fastjsonschema.validate(schema, name)


def test_defaults_and_meanings_are_the_tables() -> None:
    gate = get_schema()["definitions"]["gate"]["properties"]
    assert gate["timeout"]["default"] == 300
    assert gate["env"]["default"] == {}
    assert "default" not in gate["files"]
    last = GATE_KEYS[-1]
    assert gate[last.name]["description"] == last.description
    review = get_schema()["properties"]["review"]["properties"]
    assert review["weights"]["default"] == {"code": 1, "tests": 0.5, "documentation": 0.1}
    assert review["mode"]["enum"] == ["remind", "require", "off"]


def pyproject(settings_toml: str) -> str:
    return f'[project]\nname = "example"\nversion = "1"\n\n{settings_toml}'


GOOD_TOML = pyproject(
    """
[tool.gitgates]
jobs = 2
[tool.gitgates.gates.lint]
command = "ruff check"
timeout = "2m"
files = ["*.py"]
[tool.gitgates.gates.types]
command = ["mypy", "src"]
on_fail = "lint"
[tool.gitgates.hooks.pre-commit]
gates = ["lint", "types"]
[tool.gitgates.hooks.Stop]
gates = ["types", "review"]
strategy = "collect"
max_retries = 2
[tool.gitgates.review]
mode = "require"
critical = ["auth/"]
"""
)
BAD_TOML = {
    "an unknown key": '[tool.gitgates.gates.lint]\ncomand = "x"\n',
    "a wrong type": '[tool.gitgates]\njobs = "many"\n',
    "an unknown hook": "[tool.gitgates.hooks.pre-comit]\ngates = []\n",
    "a reserved name": '[tool.gitgates.gates.stop]\ncommand = "x"\n',
    "a key in the wrong hook": "[tool.gitgates.hooks.pre-push]\nmax_retries = 1\n",
    "no mode of a review": '[tool.gitgates.review]\nmode = "on"\n',
    "no table": "tool.gitgates = 1\n",
}


@pytest.fixture(scope="module", name="validator")
def _validator() -> api.Validator:
    return api.Validator()  # it compiles all schemas once


def test_validate_pyproject_finds_the_schema_by_its_entry_point(validator: api.Validator) -> None:
    validator(tomllib.loads(GOOD_TOML))
    assert get_schema()["$id"] in validator.registry


@pytest.mark.parametrize("bad", BAD_TOML.values(), ids=BAD_TOML)
def test_validate_pyproject_refuses(bad: str, validator: api.Validator) -> None:
    content = bad + pyproject("") if bad.startswith("tool") else pyproject(bad)
    with pytest.raises(ValidationError, match="gitgates"):
        validator(tomllib.loads(content))


@pytest.mark.thorough
@pytest.mark.slow
def test_validate_pyproject_command(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "validate-pyproject"
    file = tmp_path / "pyproject.toml"
    file.write_text(GOOD_TOML)
    done = subprocess.run([program, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"Valid file: {file}\n")
    file.write_text(pyproject(BAD_TOML["a wrong type"]))
    done = subprocess.run([program, file], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "`tool.gitgates.jobs` must be integer" in done.stdout + done.stderr


def test_schema_verb_prints_it() -> None:
    done = CliRunner().invoke(schema, [])
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == get_schema()
    fastjsonschema.compile(json.loads(done.stdout))


def test_the_entry_for_schemastore_is_one() -> None:
    """By the published schema of its catalogue; and it names our files, and our `$id`."""
    page = (SRC / "docs/how-to/editor.md").read_text()
    entry = json.loads(page.partition("```json\n")[2].partition("```")[0])
    catalogue = json.loads((SRC / "tests/schemas/schema-catalog.json").read_text())
    validate = fastjsonschema.compile(catalogue)
    validate({"$schema": catalogue["$id"], "version": 1, "schemas": [entry]})
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({"$schema": catalogue["$id"], "version": 1, "schemas": [{**entry, "url": 1}]})
    assert entry["url"] == get_schema()["$id"]
    assert {"pyproject.toml", *entry["fileMatch"]} == set(FILES)
