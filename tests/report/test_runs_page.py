"""The page of all runs: what is counted, what is escaped, and how large it can become."""

from __future__ import annotations

import copy
import re
from typing import Any

import page_support
import pytest
from artifact_support import START_S, attempt, visit
from runs_page_support import hostile_runs, kept_runs, runs_of_a_month

from gitgates.report.result import add_attempt
from gitgates.report.runs_page import runs_page
from gitgates.report.statistics import failures_found
from gitgates.store.proofs import Proof

ROOT = "/work"
_LARGEST = 1_000_000


def run(*ends: str, at_s: float = 0, trees: str = "", gate: str = "lint") -> dict[str, Any]:
    """Return a run whose attempts ended so; `trees`: a letter for the content of each."""
    document = None
    for number, status in enumerate(ends):
        tree = trees[number : number + 1]
        one = attempt(visit(gate, status), timestamp_s=START_S + at_s + number, tree=tree)  # type: ignore[arg-type]
        document = add_attempt(document, "run", one, 3)
    assert document
    return document


def committed(status: str, at_s: float, **more: Any) -> Proof:
    """Return what a hook of git that let a commit pass has recorded."""
    fields = {"content": "t", "root_abs": ROOT, "config": "c", **more}
    return Proof(gate="lint", status=status, time_s=START_S + at_s, **fields)


@pytest.mark.parametrize(
    ("documents", "proofs", "counts"),
    [
        ([run("passed")], [], None),
        ([run("failed")], [], (1, 0)),
        ([run("failed", "failed", "passed")], [], (1, 1)),
        ([run("failed"), run("failed", at_s=9), run("passed", at_s=20)], [], (1, 1)),
        ([run("passed", at_s=20), run("failed", at_s=9)], [], (1, 1)),
        ([run("failed", "passed", "failed", "passed")], [], (2, 2)),
        ([run("failed", "passed", trees="aa")], [], (1, 0)),
        ([run("failed", "passed", trees="ab")], [], (1, 1)),
        ([run("failed", "unchecked")], [], (1, 0)),
        ([run("failed", "timed-out", "skipped", "passed")], [], (1, 1)),
        ([run("failed")], [committed("passed", 5)], (1, 1)),
        ([run("failed", at_s=9)], [committed("passed", 5)], (1, 0)),
        ([run("failed")], [committed("passed", 5, root_abs="/another")], (1, 0)),
        ([run("failed")], [committed("passed", 5, config="")], (1, 0)),
    ],
)
def test_failures_found_and_fixed(
    documents: list[dict[str, Any]], proofs: list[Proof], counts: tuple[int, int] | None
) -> None:
    assert failures_found(documents, proofs, ROOT).get("lint") == counts


def cells(page: str, heading: str) -> list[list[str]]:
    """Return the texts of the rows of the table below a heading."""
    part = page.partition(f'<h2 id="{heading}">')[2].partition("</section>")[0]
    rows = re.findall(r"(?s)<tr>(.*?)</tr>", re.sub(r"(?s)<thead>.*?</thead>", "", part))
    return [
        [" ".join(re.sub(r"<.*?>", " ", cell).split()) for cell in re.split(r"</t[hd]>", row)][:-1]
        for row in rows
    ]


def test_what_the_page_shows() -> None:
    page = runs_page(runs_of_a_month())
    assert "<title>gitgates runs of /work</title>" in page
    assert cells(page, "time")[0] == ["test", "9", "20.0", "180.0"]
    assert cells(page, "value") == [["lint", "3", "3", "3.0"], ["test", "1", "0", "-"]]
    assert cells(page, "flaky") == [["test", "dddddddddddd", "0"]]
    assert cells(page, "sessions")[0][1:] == ["passed", "1", "2"]
    assert cells(page, "bypasses") == [
        ["c2c2c2c2c2c2 Second", "bypassed the gates: lint"],
        ["lint, test", "SKIP pre-commit, 2024-01-15 10:31"],
    ]
    assert len(cells(page, "runs")) == 9
    assert 'aria-label="1 passed, 0 failed"' in page
    assert "test: coverage" in page
    assert "3 runs: from 80 to 90, least 80, most 90" in page


def test_without_runs_each_part_says_so() -> None:
    page = runs_page(kept_runs([]))
    for said in ("No gate ran.", "None found.", "No runs with results are kept.", "0 commits"):
        assert said in page


def test_hostile_text_stays_text() -> None:
    page = runs_page(hostile_runs(3))
    for part in ("<script", "<img", "<b>", "\x1b", "\u202e", "\x00"):
        assert part not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("count", [1000, 5000])
def test_thousands_of_runs_make_no_large_page(count: int) -> None:
    kept = hostile_runs(2)
    many = [copy.copy(kept.documents[0]) for _ in range(count)]
    for number, document in enumerate(many):
        document["session"] = f"{page_support.HOSTILE}{number}" * 20
    proofs = [
        Proof("g" * 500, f"{number:040x}", "passed", float(number), numbers={f"m{number}": 1.0})
        for number in range(count)
    ]
    page = runs_page(
        kept._replace(
            documents=many,
            proofs=proofs,
            commits=[*kept.commits] * count,
            skips=[*kept.skips] * count,
        )
    )
    assert len(page.encode()) < _LARGEST
    assert f"{count - 100} more are not shown." in page


def test_a_run_without_attempts_has_its_row() -> None:
    report = page_support.no_gates()
    assert cells(runs_page(kept_runs([report])), "runs")[0][1] == "could-not-run"
