"""The page that compares hook managers has all that its script plays. Playing it takes a minute."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "safety.md"
MANAGERS = ("pre-commit", "prek", "lefthook", "gitgates")


@pytest.fixture(autouse=True)
def _compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "compare"))
    for name in ("bed", "managers", "page", "safety", "scenarios"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def _rows() -> list[list[str]]:
    import page

    text = PAGE.read_text(encoding="utf-8")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    made = text.partition(page.BEGIN)[2].partition(page.END)[0]
    lines = [line for line in made.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]


def test_every_scenario_has_its_row() -> None:
    import scenarios

    wanted = [row for each in scenarios.SCENARIOS for row in each.rows]
    head, _line, *rows = _rows()
    assert head == ["while the hook runs", *MANAGERS]
    assert [row[0] for row in rows] == wanted
    assert {len(row) for row in rows} == {1 + len(MANAGERS)}


def test_nothing_of_one_machine_or_moment_is_on_the_page() -> None:
    import page

    assert page.words("a in /tmp/x/repo at 2026-01-02 03:04:05", "/tmp/x") == "a in …/repo at TIME"
    text = PAGE.read_text(encoding="utf-8")
    assert "/tmp/" not in text
    assert "2026" not in text


def test_filling_the_page_anew_keeps_the_rest() -> None:
    import page

    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    once = page.fill(text, "new")
    assert once == f"before\n{page.BEGIN}\n\nnew\n\n{page.END}\nafter\n"
    assert page.fill(once, "new") == once


def test_what_a_gate_itself_says_is_left_out() -> None:
    import page

    said = "gate......Passed\n- hook id: gate\n[INFO] Restored | changes from x/patch17-4.\n"
    assert page.words(said, "/none") == r"[INFO] Restored \| changes from x/patchN."
