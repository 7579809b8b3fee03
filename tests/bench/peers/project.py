"""A project of 200 Python files with fixed content, and its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers import Gate

if TYPE_CHECKING:
    from pathlib import Path

FILES = 200
_TESTS = 20
_MODULES = FILES - _TESTS - 2
CHANGED = f"shop/m{_MODULES - 1}.py"  # nothing imports it
SUITE_S = 2.0
REUSE = "reuse = true\n"
# What a user may say of commands that are not known to be so; they have no other configuration.
BY_FILE = 'reuse = "by-file"\ninputs = [".flake8", "pyproject.toml"]\n'

SET = [
    Gate("ruff-check", "ruff check", gets_files=True, reuse=REUSE),
    Gate("ruff-format", "ruff format --check", gets_files=True, reuse=REUSE),
    Gate("mypy", "mypy", reuse=REUSE, proves="^Success: no issues"),
    Gate("pytest", "pytest -q -x", reuse=REUSE, proves=r"^\d+ passed"),
]
LINTERS = [
    Gate("ruff-check", "ruff check", gets_files=True, reuse=REUSE),
    Gate("black", "black --check", gets_files=True, reuse=BY_FILE),
    Gate("flake8", "flake8", gets_files=True, reuse=BY_FILE),
]
# What each gate of the set must refuse.
BREAKS = {
    "ruff-check": "import os\n",
    "ruff-format": "spaces  =  1\n",
    "mypy": 'WRONG: int = "text"\n',
    "pytest": "PRICE = 0\n",
}
_FILES = {
    ".gitignore": "node_modules\n__pycache__/\n.mypy_cache/\n.ruff_cache/\n.pytest_cache/\n",
    ".flake8": "[flake8]\nmax-line-length = 88\n",
    "mypy.ini": "[mypy]\nstrict = True\nfiles = shop, tests\n",
    "pytest.ini": "[pytest]\ntestpaths = tests\npythonpath = .\n",
    "ruff.toml": "line-length = 88\n",
    "shop/__init__.py": '"""A shop."""\n',
    "shop/work.py": """\
\"\"\"Work that takes a known time of the processor.\"\"\"

import time


def work(seconds: float) -> float:
    \"\"\"Work for so long; return how long it was.\"\"\"
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
    return time.process_time() - end + seconds
""",
}
_MODULE = '''\
"""Articles of shelf {number}."""

from __future__ import annotations

from dataclasses import dataclass, field
{imported}
NUMBER = 0
PRICE = {price}


@dataclass
class Article{number}:
    """An article."""

    name: str
    price: int = PRICE
    sizes: list[int] = field(default_factory=list)

    def total(self, count: int) -> int:
        """Return the price of some."""
        if count < 0:
            raise ValueError(f"{{count}} of {{self.name}}")
        return self.price * count
'''
_FUNCTION = '''

def select_{name}(articles: dict[str, Article{number}], most: int) -> list[str]:
    """Return the names of those that cost at most so much."""
    found: list[str] = []
    for name, article in sorted(articles.items()):
        if article.total(1) <= most and name not in found:
            found.append(name)
        elif article.sizes and min(article.sizes) > most:
            found.append(f"{{name}}, small")
    return found
'''
_TEST = '''\
"""Tests of shelf {number}."""

import pytest

from shop.m{module} import PRICE, Article{module}
from shop.work import work


@pytest.mark.parametrize("count", range(5))
def test_total(count: int) -> None:
    """The price of some is that of one, times their number."""
    assert PRICE > 0
    assert Article{module}("a").total(count) == PRICE * count
    assert work({seconds}) > 0
'''


def write(folder: Path) -> None:
    """Write all files of the project."""
    for path, text in _FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    for number in range(_MODULES):
        other = number // 2
        imported = f"\nfrom shop.m{other} import Article{other} as Other\n" if number else ""
        text = _MODULE.format(number=number, price=number + 1, imported=imported)
        functions = (_FUNCTION.format(name=name, number=number) for name in "abcdef")
        used = '\n\ndef other() -> Other:\n    """Return another one."""\n    return Other("o")\n'
        (folder / f"shop/m{number}.py").write_text(text + "".join(functions) + used * bool(number))
    (folder / "tests").mkdir()
    for number in range(_TESTS):
        module = _MODULES - 1 - number
        seconds = SUITE_S / _TESTS / 5
        text = _TEST.format(number=number, module=module, seconds=seconds)
        (folder / f"tests/test_{number}.py").write_text(text)


def change(folder: Path, number: int) -> None:
    """Give one file a content that it never had."""
    path = folder / CHANGED
    lines = path.read_text().splitlines(keepends=True)
    changed = [f"NUMBER = {number}\n" if one.startswith("NUMBER = ") else one for one in lines]
    path.write_text("".join(changed))
