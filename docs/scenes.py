"""Real runs that pictures show: a commit, Claude Code with a scripted model, headless runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from claude import Client, Options, Run, Turn, bash, read, write

PYPROJECT = """\
[tool.gitgates.gates.lint]
command = "ruff check --no-cache -q --output-format concise"
files = ["*.py"]
pass_files = true

[tool.gitgates.gates.test]
command = "pytest -q --tb=no -p no:cacheprovider"
failures = "pytest"
metrics = { tests = { pattern = '(\\d+) passed', better = "higher" } }

[tool.gitgates.hooks.pre-commit]
gates = ["lint"]

[tool.gitgates.hooks.Stop]
gates = ["lint", "test"]
strategy = "collect"

[tool.gitgates.hooks.headless]
gates = ["lint", "test"]
max_retries = 2

[tool.gitgates.headless]
agent_args = ["--dangerously-skip-permissions"]
"""
PRICE = """\
def total(prices):
    return sum(prices)
"""
WITH_REST = '''\
def total(prices):
    """Return the sum of all prices."""
    rest = len(prices)
    return sum(prices)
'''
ALWAYS_DISCOUNT = """\
def total(prices):
    return round(sum(prices) * 0.9, 2)
"""
DISCOUNT = """\
def total(prices):
    full = sum(prices)
    return round(full * 0.9, 2) if full > 100 else full
"""
CENTS = """\
def total(prices):
    full = sum(prices) * 100
    return round(full * 0.9) if full > 100_00 else full
"""
TESTS = """\
from price import total


def test_sum():
    assert total([1, 2, 3]) == 6
"""
DISCOUNT_TEST = """

def test_discount():
    assert total([60, 60]) == 108
"""
EMPTY_TEST = """

def test_no_price():
    assert total([]) == 0
"""
PROMPT = "Give a discount of 10% on totals above 100."
HOME = "/home/ann/shop"
# What differs from run to run, and what stands in its place.
RUN = "20260301T101500.204816Z-4242"
COMMIT = "5ed6f0a3c6b1b0f29c7d3a5b8b8e3a1f0d2c4e6a"
GATES_S = {"lint": 0.03, "test": 0.21}
FED_BACK = 620
TURNS_S = (12.4, 8.1, 9.6)
_STEADY = (
    (re.compile(r"\d{8}T\d{6}\.\d{6}Z-\d+"), RUN),
    (re.compile(r'"timestamp": "[^"]+"'), '"timestamp": "2026-03-01T10:15:00Z"'),
    (re.compile(r"\bin \d+\.\d\ds"), "in 0.02s"),  # pytest's
    (re.compile(r"session [0-9a-f]{8}\b"), "session 5c0ffee1"),
    (re.compile(r"\b\d+ s ago\b"), "9 s ago"),
    (re.compile(r"^((?:\x1b\[\d+m)*lint\b.*?)\d+\.\d\d s", re.MULTILINE), r"\g<1>0.03 s"),
    (re.compile(r"^((?:\x1b\[\d+m)*test\b.*?)\d+\.\d\d s", re.MULTILINE), r"\g<1>0.21 s"),
)


class Shop:
    """A small project with gates, in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "shop"
        self.path.mkdir()
        self.client = Client(folder)
        # Nothing of the person's own: no settings of git, no identity.
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.client.home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": "2026-03-01T10:15:00Z",
            "GIT_COMMITTER_DATE": "2026-03-01T10:15:00Z",
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.run("git init -q -b main")
        self.run("git config user.name Ann; git config user.email ann@example.com")
        self.write("pyproject.toml", PYPROJECT)
        self.write(".gitignore", ".claude/\n__pycache__/\n")
        self.write("price.py", PRICE)
        self.write("test_price.py", TESTS)
        self.run("git add . && git commit -q -m 'Add prices'")
        self.run("gitgates install-hooks && gitgates install-hooks --agent claude")

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.path / name).write_text(text)

    def run(self, command: str, *, status: int = 0) -> str:
        """Run a command in a shell; return what it prints, in colour."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.path,
            env={**self.env, "FORCE_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return self.steady(done.stdout)

    def agent(self, prompt: str, *turns: Turn, command: tuple[str, ...] = ()) -> Run:
        """Have Claude Code do something, with a model that says what `turns` are."""
        os.environ["PATH"] = self.env["PATH"]
        env = {
            name: value for name, value in self.env.items() if name.startswith(("GIT_", "PYTHON"))
        }
        options = Options(env=env, command=command, limit_s=120.0)
        return self.client.run(list(turns), cwd=self.path, prompts=(prompt,), options=options)

    def steady(self, text: str) -> str:
        """Return a text without what differs each time: paths, ids and durations."""
        text = text.replace(str(self.path), HOME)
        for pattern, steady in _STEADY:
            text = pattern.sub(steady, text)
        return text


def refused_commit(shop: Shop) -> list[tuple[str, str]]:
    """Return commands, and what they print: a commit that a gate refuses, then one that passes."""
    shop.write("price.py", WITH_REST)
    commit = "git commit -am 'Describe the total'"
    refused = shop.run(commit, status=1)
    fix = "sed -i '/rest/d' price.py"
    return [(commit, refused), (fix, shop.run(fix)), (commit, shop.run(commit))]


def kept_at_work(shop: Shop) -> Run:
    """Let an agent stop too early, and again after it has fixed what the gates found."""
    price, tests = shop.path / "price.py", shop.path / "test_price.py"
    return shop.agent(
        PROMPT,
        read(price),
        write(price, ALWAYS_DISCOUNT),
        read(tests),
        write(tests, TESTS + DISCOUNT_TEST),
        "Totals get a discount of 10% now.",
        write(price, DISCOUNT),
        "Only totals above 100 get the discount now.",
    )


def undone(shop: Shop) -> list[tuple[str, str]]:
    """Return commands, and what they print: an agent discards work, and it comes back."""
    shop.write("notes.md", "Ask Bea about discounts\n")
    shop.write("price.py", WITH_REST)
    destroy = "git checkout . && git clean -fd"
    shop.agent("Start again", bash(destroy), "The tree is clean.")
    shown = ("git status --short", "gitgates undo", "gitgates undo 1", "git status --short")
    return [(command, shop.run(command)) for command in shown]


def headless_runs(shop: Shop) -> list[dict[str, Any]]:
    """Have three tasks done; return the result of each, as it was written down.

    Paths are relative: each run works in a worktree of its own.
    """
    price, tests = Path("price.py"), Path("test_price.py")
    _headless(
        shop,
        "Give a discount of 10% on totals above 100",
        (read(price), read(tests)),
        (write(price, ALWAYS_DISCOUNT), write(tests, TESTS + DISCOUNT_TEST)),
        "Totals get a discount of 10% now.",
        write(price, DISCOUNT),
        "Only totals above 100 get the discount now.",
    )
    changes = [(write(price, f"{CENTS}# {number}\n"), "Done.") for number in range(3)]
    work = [turn for change in changes for turn in change]
    _headless(shop, "Round totals to cents", read(price), *work, status=1)
    _headless(
        shop,
        "Test the total of no prices",
        read(tests),
        write(tests, TESTS + DISCOUNT_TEST + EMPTY_TEST),
        "There is a test for an empty list now.",
    )
    return _steady_results(shop)


def _headless(shop: Shop, task: str, *turns: Turn, status: int = 0) -> None:
    run = shop.agent("", *turns, command=("gitgates", "headless", task))
    assert run.end["exit_status"] == status, run.said


def _steady_results(shop: Shop) -> list[dict[str, Any]]:
    """Give the results of all runs the same ids and durations each time; return them in order."""
    found = []
    for path in sorted(shop.path.glob(".git/gitgates/runs/*/result.json")):
        document = json.loads(shop.steady(path.read_text()))
        cycle, headless = document["quality_gates"], document["headless"]
        for attempt in cycle["attempts"]:
            for result in attempt["results"]:
                result["duration_seconds"] = GATES_S[result["name"]]
            attempt["duration_seconds"] = sum(GATES_S.values())
            if attempt["fed_back_bytes"]:  # an id in it has more digits or fewer
                attempt["fed_back_bytes"] = FED_BACK
        cycle["total_duration_seconds"] = len(cycle["attempts"]) * sum(GATES_S.values())
        for turn, seconds in zip(headless["turns"], TURNS_S, strict=False):
            turn["seconds"] = seconds
        if "commit" in headless:
            headless["commit"] = COMMIT
        path.write_text(json.dumps(document))
        found.append(document)
    return found
