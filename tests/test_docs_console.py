"""What pages show of a terminal is what commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import SRC, Repo

BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DURATION = re.compile(r" +\d+\.\d\d s")
PROJECT = """
[tool.ruff]
line-length = 100

[tool.pytest.ini_options]
testpaths = ["."]
"""


def shown(console: str) -> list[tuple[str, list[str]]]:
    """Return each command of a block, and the lines that it prints."""
    commands: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def steady(text: str) -> str:
    return DURATION.sub(" N s", text)


def pattern(lines: list[str]) -> str:
    """Return what output has to match; a line of `…` stands for any number of lines."""
    return "".join("(?s:.*)" if line == "…" else re.escape(steady(line)) + "\n" for line in lines)


def check(repo: Repo, console: str) -> None:
    for command, lines in shown(console):
        done = repo.ask("sh", "-c", f"exec 2>&1; {command}")
        printed = steady(done.stdout.decode())
        assert re.fullmatch(pattern(lines), printed), f"$ {command}\n{printed}"


def blocks(page: str, *kinds: str) -> list[tuple[str, str]]:
    """Return kind and text of the blocks of a page."""
    found = BLOCKS.findall((SRC / page).read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if kind in kinds]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_readme_shows_what_commands_print(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path)
    repo.write("pyproject.toml", PROJECT)
    repo.write(".gitignore", "__pycache__/\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "Begin")
    repo.write("price.py", "def total(prices):\n    return sum(prices)\n")
    repo.write("test_price.py", "def test_nothing():\n    pass\n")
    consoles = [text for _kind, text in blocks("README.md", "console")]
    assert len(consoles) == 1
    for console in consoles:
        check(repo, console)


@pytest.mark.slow
def test_the_tutorial_goes_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, for somebody whom git does not know yet."""
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
        monkeypatch.delenv(f"GIT_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    page = blocks("docs/tutorial/first-gates.md", "sh", "toml", "console")
    assert [kind for kind, _text in page[:3]] == ["sh", "sh", "toml"]
    assert [kind for kind, _text in page].count("console") == 8
    for _kind, text in page[:2]:
        Repo(tmp_path).ask("sh", "-ec", text)
    repo = Repo(tmp_path / "hello")
    for kind, text in page[2:]:
        if kind == "toml":
            repo.write("pyproject.toml", text)
        else:
            check(repo, text)


def test_a_line_that_differs_is_found(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path)
    check(repo, "$ echo one; echo two; echo three\none\n…\nthree\n")
    for wrong in ("one\n", "one\ntwo\n", "two\n…\n"):
        with pytest.raises(AssertionError, match="three"):
            check(repo, f"$ echo one; echo two; echo three\n{wrong}")
