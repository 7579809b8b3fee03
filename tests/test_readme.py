"""The README claims no more than what was measured and tested, and its examples are right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from conftest import SRC, Repo

README = (SRC / "README.md").read_text(encoding="utf-8")
RECIPES = (SRC / "docs/how-to/recipes.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```toml( own)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [(own, text) for page in (README, RECIPES) for own, text in EXAMPLE.findall(page)]
(MEMBER,) = re.findall(r"^```toml member\n(.*?)^```$", RECIPES, re.MULTILINE | re.DOTALL)
PEERS = ("gitgates", "pre-commit", "prek", "lefthook", "husky + lint-staged")


def _row(begin: str) -> list[str]:
    """Return the cells of the row of the comparison that begins like this."""
    (row,) = re.findall(rf"^\| {re.escape(begin)} \| (.*) \|$", README, re.MULTILINE)
    cells: list[str] = row.split(" | ")
    return cells


@pytest.mark.parametrize(
    ("row", "scenario"),
    [
        ("a hook with one gate that does nothing", "noop-1"),
        ("a commit whose gates an agent's stop has run", "after-stop"),
    ],
)
def test_the_figures_are_those_of_the_benchmarks(
    row: str, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SRC / "tests/bench/peers"))
    import figures

    measured = figures.read(SRC / "docs/reference/benchmarks.json").scenarios[scenario]
    shown = [_shown(measured.median(name)) for name in PEERS]
    assert _row(row) == [*shown, "not measured"]


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def test_the_number_of_agents_is_what_tests_with_real_clients_show() -> None:
    sys.path.append(str(SRC / "tests/client"))
    from abilities import ABILITIES, BLOCK

    others = [agent for agent, can in ABILITIES.items() if can[BLOCK].startswith("blocked")]
    number = len({"claude", *others})
    assert _row("checks at an agent's stop")[0] == f"{number} agents, until they pass"
    assert number == 2 + 9
    assert "Claude Code, Codex and [nine others]" in README


@pytest.mark.parametrize(("own", "text"), EXAMPLES)
def test_each_example_is_a_configuration_without_problems(
    tmp_path: Path, own: str, text: str
) -> None:
    repo = Repo.init(tmp_path)
    repo.write("web/gitgates.toml", MEMBER)
    repo.write("gitgates.toml" if own else "pyproject.toml", text)
    done = repo.gitgates("check")
    assert (done.returncode, done.stderr) == (0, b""), done.stdout
    assert b"no problems" in done.stdout
