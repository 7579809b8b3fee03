"""`gitgates convert` adds what other hook managers run, and leaves the rest as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgates.cli.convert import command
from gitgates.core.errors import ConfigError, UsageError

LEFTHOOK = """\
output: [summary]
pre-commit: {jobs: [{name: check, run: ./check}, {name: test, run: make test}]}
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return folder


def convert(root: Path, *args: str) -> None:
    (root / "lefthook.yml").write_text(LEFTHOOK)
    assert command.main([*args], standalone_mode=False) == 0


GATES = """\
[gates.check]
command = "./check"

[gates.test]
command = "make test"

[hooks.pre-commit]
gates = ["check", "test"]
"""


def test_a_new_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(root, "lefthook.yml")
    assert (root / "gitgates.toml").read_text() == GATES
    said, told = capsys.readouterr()
    assert said == (
        "gitgates.toml: added 2 gates: check, test; added 1 hook: pre-commit\n"
        "next: gitgates check\nthen uninstall lefthook, because its commands would run twice\n"
    )
    assert told == "lefthook.yml: output: it only affects lefthook's output\n"


def test_what_is_there_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = '[gates.check]\ncommand = "mine"\n\n[hooks.pre-commit]\ngates = [ "check" ]\n'
    (root / "gitgates.toml").write_text(old)
    convert(root)
    assert (root / "gitgates.toml").read_text() == (
        '[gates.check]\ncommand = "mine"\n\n[hooks.pre-commit]\ngates = [ "check", "test" ]\n\n'
        '[gates.test]\ncommand = "make test"\n'
    )
    assert capsys.readouterr().err.splitlines()[1:] == [
        "gitgates.toml: gates.check: already exists with a different value; left unchanged"
    ]
    convert(root)
    assert capsys.readouterr().out == "gitgates.toml: nothing to add\n"


def test_a_dry_run_writes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(root, "--dry-run")
    added = "".join(f"+{line}\n" for line in GATES.splitlines())
    assert (
        capsys.readouterr().out == f"--- /dev/null\n+++ b/gitgates.toml\n@@ -0,0 +1,8 @@\n{added}"
    )
    assert [entry.name for entry in root.iterdir()] == ["lefthook.yml"]


def test_a_configuration_with_problems_is_left(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool")
    with pytest.raises(ConfigError, match=r"pyproject.toml: is not valid TOML"):
        convert(root)
    assert (root / "pyproject.toml").read_text() == "[tool"


@pytest.mark.parametrize("args", [[], ["gone.yml"], ["gates.json"], ["."]])
def test_nothing_to_convert_is_an_error(args: list[str]) -> None:
    with pytest.raises(UsageError, match="found nothing to convert") as caught:
        command.main(args, standalone_mode=False)
    assert "It reads the files of lefthook, husky" in str(caught.value)
