"""Pages of runs, rendered by Chromium: contrast, width, requests, structure."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import page_support
import pytest
import runs_page_support

from gitgates.report.page import page
from gitgates.report.runs_page import runs_page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="there is no chromium in the PATH"),
]
CHECK = Path(__file__).with_name("page_check.html")


def chromium(folder: Path, *args: str) -> tuple[str, list[str]]:
    """Return what Chromium prints, and what pages wrote to its console."""
    assert CHROMIUM
    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    argv += [f"--user-data-dir={folder}/profile", "--allow-file-access-from-files"]
    argv += ["--disable-background-networking", "--enable-logging=stderr", *args]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def look_at(folder: Path, html: str, scheme: str) -> dict[str, Any]:
    """Return what is found in a page."""
    (folder / "page.html").write_text(html, encoding="utf-8")
    shutil.copy(CHECK, folder / "check.html")
    is_light = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    printed, console = chromium(
        folder, is_light, "--dump-dom", f"file://{folder}/check.html#{scheme}"
    )
    assert console == []
    found = re.search(r'<pre id="found">(.+?)</pre>', printed, re.DOTALL)
    assert found, printed[-2000:]
    facts: dict[str, Any] = json.loads(unescape(found[1]))
    return facts


@pytest.mark.samples(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["hostile", "one_attempt", "twelve_attempts", "no_gates"])
def test_the_page_in_a_browser(tmp_path: Path, name: str, scheme: str) -> None:
    document = getattr(page_support, name)()
    html = page(document, ({"name": "coverage", "values": [81, 79, 90.5]},))
    title = f"gitgates headless: {document['headless']['status']}"
    check(look_at(tmp_path, html, scheme), scheme, title)


@pytest.mark.samples(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["month", "hostile", "none"])
def test_the_page_of_all_runs_in_a_browser(tmp_path: Path, name: str, scheme: str) -> None:
    kept = {
        "month": runs_page_support.runs_of_a_month(),
        "hostile": runs_page_support.hostile_runs(5),
        "none": runs_page_support.kept_runs([]),
    }[name]
    found = look_at(tmp_path, runs_page(kept), scheme)
    check(found, scheme, found["title"])
    assert found["title"].startswith("gitgates runs of /")


def check(found: dict[str, Any], scheme: str, title: str) -> None:
    """Check what is found in a page that is as it should be."""
    headings = found.pop("headings")
    assert headings[0] == 1
    assert set(headings[1:]) == {2}
    assert found.pop("contrast") >= 4.5
    assert found.pop("widest") <= 375
    assert found == {
        "dark": scheme == "dark",
        "title": title,
        "requests": [],
        "active": 0,
        "mains": 1,
        **dict.fromkeys(["unnamed", "tables", "pictures", "scrolled", "ids", "links"], 0),
    }


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("pdftotext"), reason="there is no pdftotext in the PATH")
def test_the_page_on_paper_shows_what_is_folded(tmp_path: Path) -> None:
    passed = page_support.gate("test", output="first line\n" * 200 + "the last line\n")
    document = page_support.run_result(("passed", (passed,)), turns=[])
    (tmp_path / "page.html").write_text(page(document), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path}/page.pdf", f"file://{tmp_path}/page.html")
    text = subprocess.run(
        ["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, check=True
    )
    assert text.stdout.count(b"first line") == 200
    assert b"the last line" in text.stdout
