"""Commands that are known to look at files only, and what a gate gets by that."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from config_support import read

from gitgates.config.file_tools import TOOLS, file_tool, with_defaults
from gitgates.core.types import Gate
from gitgates.engine.match import select


def gate(text: str) -> Gate:
    config, said, _deferred = read(f"[gates.g]\n{text}")
    assert not said, said
    (found,) = config.gates
    return found


def test_every_tool() -> None:
    known = [tool.words for tool in TOOLS]
    for commands in (
        [*known],
        [tuple(words.split()) for words in known],
        [f".venv/bin/{words} --quiet src" for words in known],
    ):
        assert [file_tool(command) for command in commands] == [*TOOLS]


@pytest.mark.parametrize(
    "command",
    [
        "uv run mypy",
        "poetry run mypy src",
        "python -m mypy",
        "python3 -m mypy -p a",
        "pdm run mypy",
    ],
)
def test_behind_a_launcher(command: str) -> None:
    tool = file_tool(command)
    assert tool
    assert tool.words == "mypy"


NOT_KNOWN: list[Any] = [
    None,
    "",
    "make lint",
    "ruff",
    "ruff server",
    "pytest",
    "cargo test",
    "cargo clippy",
    "ruff check; curl x",
    "ruff check && make",
    "ruff check | tee log",
    "ruff check > log",
    "ruff check $FILES",
    "ruff check `files`",
    "ruff check src/*.py",
    "ruff check ~/other",
    "ruff check 'unclosed",
    "ruff check ../other",
    "ruff check /etc",
    "ruff check --config=/etc/ruff.toml",
    "ruff check --config ../ruff.toml",
    "ruff check --watch",
    "yamllint -c/etc/yamllint",
    "tsc",
    "tsc -p .",
    "tsc --noEmit -w",
    "cargo test fmt",
    "ruff check --output-file report.json",
    "eslint -o report.json",
    "mypy --junit-xml=report.xml",
    "mypy --html-report out",
    "tsc -w",
    "npx -p x tsc",
    "uv run --with x ruff check",
    "hatch run mypy",  # which starts one in an environment of its own
    "env A=b mypy",
    ("sh", "-c", "mypy"),
]


def test_not_known() -> None:
    assert [command for command in NOT_KNOWN if file_tool(command)] == []
    for command in NOT_KNOWN:
        fields = {"command": command, "reuse": True}
        assert with_defaults(fields) == fields


def test_defaults() -> None:
    assert gate('command = "pytest"') == Gate(name="g", command="pytest")
    assert gate('command = "ruff check"\npass_files = true').reuse == "auto"
    assert gate('command = "ruff check"').reuse == "auto"
    assert gate('command = "mypy"\npass_files = true').reuse is True
    assert gate('command = "mypy"').reuse is True
    whole = gate('command = "ruff check"\nreuse = true')
    assert (whole.reuse, whole.inputs) == (True, ())
    assert "../ruff.toml" in whole.reads
    assert "RUFF_*" in whole.env_inputs
    by_file = gate('command = "ruff check"\npass_files = true\nreuse = true')
    assert by_file.reuse == "by-file"
    assert by_file.reads == whole.reads
    assert gate('command = "mypy"\npass_files = true\nreuse = true').reuse is True


def test_what_is_written_stands() -> None:
    off = gate('command = "ruff check"\nreuse = false')
    assert off == Gate(name="g", command="ruff check")
    written = gate('command = "ruff check"\nreads = []\nenv_inputs = ["A"]\nreuse = true')
    assert (written.reads, written.env_inputs, written.reuse) == ((), ("A",), True)
    assert gate('command = "pytest"\nreuse = true').reuse is True


@pytest.mark.parametrize("path", ["tool.toml", "~", "..", "~/.config/*.toml", "~other/x"])
def test_reads_names_places_outside(path: str) -> None:
    _config, said, _deferred = read(f'[gates.g]\ncommand = "x"\nreads = ["{path}"]')
    wanted = "expected `/path`, `~/path` or `../name`"
    assert said.startswith(f"gitgates.toml: gates.g.reads: got `{path}`, {wanted}")


@pytest.mark.parametrize("name", ["A=B", "A B"])
def test_env_inputs_names_variables(name: str) -> None:
    _config, said, _deferred = read(f'[gates.g]\ncommand = "x"\nenv_inputs = ["{name}"]')
    wanted = f"gates.g.env_inputs: got `{name}`, expected the name of a variable"
    assert said.startswith(f"gitgates.toml: {wanted}")


def test_by_file_requires_paths() -> None:
    _config, said, _deferred = read('[gates.g]\ncommand = "x"\nreuse = "by-file"')
    assert said == 'gitgates.toml: gates.g.reuse: as "by-file" requires `pass_files = true`'


@pytest.mark.parametrize("command", ["black", "prettier --check", "yamllint"])
def test_configuration_that_any_file_may_be_part_of(command: str) -> None:
    asked = gate(f'command = "{command}"\npass_files = true')
    assert (asked.reuse, asked.inputs) == (True, ())


def test_what_tools_read_above_the_root() -> None:
    assert "../.flake8" in gate('command = "flake8"').reads
    assert "../.yamllint" in gate('command = "yamllint ."').reads
    assert "../shellcheckrc" in gate('command = "shellcheck a.sh"').reads
    assert "~/.rustfmt.toml" in gate('command = "cargo fmt --check"').reads
    assert "../tsconfig.json" in gate('command = "tsc -p web --noEmit"').reads


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("ruff check", "pyproject.toml"),
        ("ruff check", "sub/.ruff.toml"),
        ("ruff check", "shared/base.toml"),  # `extend` may name it
        ("ruff check --config lint/rules.conf", "lint/rules.conf"),
        ("ruff check --config=lint/rules.conf", "web/lint/rules.conf"),  # in `working_dir`
        ("ruff check -cchecks/lint", "checks/lint"),
        ("ruff check --cfg=./.ignored", ".ignored"),
        ("ruff check --config 'a b[1].cfg'", "a b[1].cfg"),
        ("shfmt -d", "deep/.editorconfig"),
    ],
)
def test_configuration_of_a_gate_by_file(command: str, path: str) -> None:
    for asked in (command, tuple(shlex.split(command))):
        fields = with_defaults({"command": asked, "pass_files": True, "reuse": True})
        assert fields["reuse"] == "by-file"
        assert select((path, "src/a.py"), fields["inputs"], ()) == (path,)


def test_the_docs_name_each_known_command() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/reuse.md").read_text("utf-8")
    assert [tool.words for tool in TOOLS if f"`{tool.words}`" not in page] == []
