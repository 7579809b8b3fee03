"""The bench beside other hook managers: its page says what was measured, and it looks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "tests/bench/peers"
REFERENCE = ROOT / "docs/reference"


def _bench(code: str) -> subprocess.CompletedProcess[str]:
    """Run code beside the modules of the bench."""
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, cwd=PEERS, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_page_has_what_was_measured() -> None:
    path = str(REFERENCE / "benchmarks.json")
    code = "import sys, pathlib, benchmarks_page, figures\n"
    code += f"found = figures.read(pathlib.Path({path!r}))\n"
    code += "sys.stdout.write(benchmarks_page.page(found))"
    done = _bench(code)
    assert done.stderr == ""
    page = (REFERENCE / "benchmarks.md").read_text(encoding="utf-8")
    assert page == done.stdout, "stale: run `make bench-docs PAGE=1`"


def test_each_picture_of_the_page_is_there_in_light_and_dark() -> None:
    page = (REFERENCE / "benchmarks.md").read_text(encoding="utf-8")
    shown = re.findall(r'(?:src|srcset)="([^"]+)"', page)
    assert sorted(shown) == sorted(
        f"../pictures/{path.name}" for path in (ROOT / "docs/pictures").glob("bench-*.svg")
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "kept"), [("load before", "['storm', 'a']\n"), ("Python", "[]\n")]
)
def test_figures_of_a_machine_like_this_are_kept(tmp_path: Path, name: str, kept: str) -> None:
    path = str(tmp_path / "saved.json")
    code = "import figures, pathlib\nfrom storm import Storm\n"
    code += f"machine, path = figures.machine(), pathlib.Path({path!r})\n"
    code += "new = figures.Figures(machine, {}, [], Storm(), {}, {}, False)\nnew.keep(path)\n"
    code += f"old = new._replace(machine={{**machine, {name!r}: 'x'}}, waits={{'a': [1.0]}},\n"
    code += "    scenarios={'storm': figures.Measured('them', {})})\n"
    code += "old.save(path)\nnew.keep(path)\nprint([*new.scenarios, *new.waits])"
    done = _bench(code)
    assert (done.stderr, done.stdout) == ("", kept)


# What a peer prints where a gate of three did not run, or failed.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("gitgates", "gate-0  passed  0.01 s\n", "gate-0  skipped  no file has changed\n"),
        ("gitgates", "gate-0  passed  0.01 s\n", "gate-0  reused  0.00 s  Stop, 0 s ago\n"),
        ("prek", "gate-0....Passed\n", "gate-0....(no files to check)Skipped\n"),
        ("pre-commit", "gate-0....Passed\n", "gate-0....Failed\n"),
        ("lefthook", "✓ gate-0 (0.01 seconds)\n", "✗ gate-0 (0.01 seconds)\n"),
        ("husky + lint-staged", "[COMPLETED] true\n", "[FAILED] true\n"),
    ],
)
def test_a_gate_that_did_not_pass_ends_the_bench(name: str, good: str, bad: str) -> None:
    code = "from peers import Gate, Peer\n"
    code += f"Peer({name!r}, '').must_pass([Gate('gate-0', 'true')], {{!r}})"
    assert _bench(code.format(good)).returncode == 0
    done = _bench(code.format(bad))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: gate-0 is not shown as passed:")


@pytest.mark.nightly
def test_hooks_are_measured_and_the_page_is_made() -> None:
    argv = [sys.executable, str(PEERS / "measure.py"), "--quick", "--only", "noop,agent"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "# Benchmarks\n" in done.stdout
    assert "three gates `true`: of prek" in done.stdout
    targets = done.stdout.splitlines()[-12:]
    assert {line.split("  ")[0] for line in targets} <= {"met", "missed", "not measured"}
