"""Which changes ask for a review at the default settings: real diffs, each with its verdict."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from config_support import table
from conftest import Repo
from span_support import Colleague, Watched, long_ago, right_now, text

from gitgates.core.agent_types import FileDifference
from gitgates.features.review.config import Weighting
from gitgates.features.review.significance import Significance, weigh

pytestmark = pytest.mark.slow

NOTHING = "nothing relevant has changed"
CODE = "code, weight 1"
TESTS = "tests, weight 0.5"
DOCS = "documentation, weight 0.1"


def sums(lines: str, files: str) -> str:
    counted = (("line", lines, 40), ("file", files, 5))
    return ", ".join(
        f"{number} weighted {noun}{'' if number == '1' else 's'} (threshold {most})"
        for noun, number, most in counted
    )


def do(script: str) -> Callable[[Repo], None]:
    """Return what runs a script in the working tree."""

    def run(repo: Repo) -> None:
        done = repo.ask("bash", "-ec", script)
        assert done.returncode == 0, done.stderr

    return run


def files(**content: str | bytes | None) -> Callable[[Repo], None]:
    """Return what writes files, or removes them. In names, `__` is a slash and `_DOT_` a dot."""
    return tree({name.replace("__", "/"): value for name, value in content.items()})


def tree(content: Mapping[str, str | bytes | None]) -> Callable[[Repo], None]:
    def write(repo: Repo) -> None:
        for name, value in content.items():
            if value is None:
                (repo.path / name).unlink()
            else:
                repo.write(name, value)

    return write


BEFORE: dict[str, str | bytes] = {
    "src/app.py": text("app", 200),
    "src/util.py": text("util", 60),
    "src/nested.py": "".join(f"if a{n}:\n    b{n}()\n" for n in range(50)),
    "src/old.py": text("old", 120),
    "tests/test_app.py": text("test", 200),
    "docs/guide.md": text("words", 300),
    "README.md": text("read", 100),
    "CMakeLists.txt": text("cmake", 30),
    "requirements.txt": text("package", 60),
    "package-lock.json": text("lock", 400),
    "api/schema.gen.ts": text("schema", 200),
    "vendor/lib/a.js": text("vendored", 100),
    "assets/logo.png": b"\x89PNG\0\0" + bytes(range(256)),
    "lib/core.bin": b"\0\1\2" * 100,
    "bin/run.sh": text("echo", 10),
    ".github/workflows/ci.yml": text("step", 40),
    ".gitattributes": "*.gen.ts linguist-generated\nthird/** linguist-vendored=true\n*.dat -diff\n",
    "third/x.c": text("third", 50),
    "table.dat": text("row", 80),
    "generated/out.py": text("out", 80),
    "noeol.py": "a = 1\nb = 2",
}


class Row(NamedTuple):
    """One change: what is done, and what comes of it."""

    what: str
    act: Callable[[Repo], None]
    significant: bool
    why: str
    each: dict[str, str]  # path → why it weighs what it weighs
    review: Weighting = table(Weighting)
    numbers: Mapping[str, int] = {}  # path → changed lines, where nothing else matters


def _reindent(repo: Repo) -> None:
    path = repo.path / "src/nested.py"
    path.write_text(path.read_text().replace("    ", "\t"))


def _crlf(repo: Repo) -> None:
    path = repo.path / "src/app.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def _rewrite(repo: Repo, name: str = "src/app.py", lines: int = 20) -> None:
    rows = (repo.path / name).read_text().splitlines(keepends=True)
    (repo.path / name).write_text("".join([f"new = {n}\n" for n in range(lines)] + rows[lines:]))


def rewrite(name: str, lines: int) -> Callable[[Repo], None]:
    """Return what makes the first lines of a file others."""
    return lambda repo: _rewrite(repo, name, lines)


def _moved_in_many(repo: Repo) -> None:
    (repo.path / "package").mkdir()
    for name in ("app", "util", "nested", "old"):
        repo.git("mv", f"src/{name}.py", f"package/{name}.py")


def _merge_main(repo: Repo) -> None:
    repo.add_origin()
    colleague = Colleague(repo, repo.path.parent / "colleague")
    colleague.push("src/theirs.py", text("theirs", 500))
    repo.write("src/own.py", text("own", 10))
    repo.commit_all("own")
    repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")


def _submodule(repo: Repo) -> None:
    Repo.init(repo.path.parent / "module").git("commit", "-q", "--allow-empty", "-m", "first")
    repo.git("submodule", "--quiet", "add", "../module", "module")


def _type_change(repo: Repo) -> None:
    (repo.path / "bin/run.sh").unlink()
    (repo.path / "bin/run.sh").symlink_to("../src/app.py")


CRITICAL = table(Weighting, critical=(".github/", "src/util.py"))
LOCKED = "left out: generated or vendored"
SPACE = "left out: only white space"
VENDORED = LOCKED
CI = ".github/workflows/ci.yml"

ROWS = (
    Row(
        "a line",
        rewrite("src/app.py", 1),
        False,
        sums("1", "1"),
        {"src/app.py": CODE},
        numbers={"src/app.py": 1},
    ),
    Row(
        "20 lines rewritten",
        rewrite("src/app.py", 20),
        False,
        sums("20", "1"),
        {"src/app.py": CODE},
        numbers={"src/app.py": 20},
    ),
    Row(
        "39 lines",
        rewrite("src/app.py", 39),
        False,
        sums("39", "1"),
        {"src/app.py": CODE},
        numbers={"src/app.py": 39},
    ),
    Row("40 lines", rewrite("src/app.py", 40), True, sums("40", "1"), {"src/app.py": CODE}),
    Row(
        "a new file",
        files(src__new="x\n" * 64),
        True,
        sums("64", "1"),
        {"src/new": CODE},
    ),
    Row(
        "a small new file",
        tree({"src/new.py": text("new", 12)}),
        False,
        sums("12", "1"),
        {"src/new.py": CODE},
        numbers={"src/new.py": 12},
    ),
    Row(
        "an empty new file",
        tree({"src/__init__.py": ""}),
        False,
        NOTHING,
        {"src/__init__.py": SPACE},
    ),
    Row("a file removed", tree({"src/old.py": None}), True, sums("120", "1"), {"src/old.py": CODE}),
    Row(
        "five files, a line each",
        tree({f"src/n{n}.py": "n\n" for n in range(5)}),
        True,
        sums("5", "5"),
        {f"src/n{n}.py": CODE for n in range(5)},
        numbers={f"src/n{n}.py": 1 for n in range(5)},
    ),
    Row(
        "four files, a line each",
        tree({f"src/n{n}.py": "n\n" for n in range(4)}),
        False,
        sums("4", "4"),
        {f"src/n{n}.py": CODE for n in range(4)},
        numbers={f"src/n{n}.py": 1 for n in range(4)},
    ),
    Row(
        "a rename with other white space",
        do("git mv src/old.py src/renamed.py; echo >> src/renamed.py"),
        False,
        NOTHING,
        {"src/renamed.py": SPACE},
    ),
    Row(
        "a rename with two new lines",
        do("mv src/old.py src/renamed.py; printf 'a\\nb\\n' >> src/renamed.py"),
        False,
        sums("2", "1"),
        {"src/renamed.py": f"{CODE}, renamed from `src/old.py`"},
    ),
    Row(
        "code renamed to what looks like a text",
        do("mv src/old.py docs/old.md; seq 45 >> docs/old.md"),
        True,
        sums("45", "1"),
        {"docs/old.md": f"{CODE}, renamed from `src/old.py`"},
    ),
    Row("a reformat: tabs", _reindent, False, NOTHING, {"src/nested.py": SPACE}),
    Row("a reformat: CRLF", _crlf, False, NOTHING, {"src/app.py": SPACE}),
    Row(
        "a reformat, and a line",
        do("sed -i 's/ = / =  /' src/app.py; echo new >> src/app.py"),
        False,
        sums("1", "1"),
        {"src/app.py": CODE},
    ),
    Row(
        "executable now",
        do("chmod +x bin/run.sh"),
        False,
        NOTHING,
        {"bin/run.sh": "left out: only its mode changed"},
    ),
    Row(
        "a lock file",
        do("seq 5000 > package-lock.json"),
        False,
        NOTHING,
        {"package-lock.json": LOCKED},
        numbers={"package-lock.json": 5000},
    ),
    Row(
        "a dependency and its lock file",
        do("seq 5000 > package-lock.json; echo pin >> requirements.txt"),
        False,
        sums("1", "1"),
        {"requirements.txt": CODE, "package-lock.json": LOCKED},
        numbers={"requirements.txt": 1, "package-lock.json": 5000},
    ),
    Row(
        "lock files of all sorts",
        tree({f"{d}{n}": text("l", 900) for d in ("", "sub/") for n in ("uv.lock", "go.sum")}),
        False,
        NOTHING,
        dict.fromkeys(("go.sum", "sub/go.sum", "sub/uv.lock", "uv.lock"), LOCKED),
        numbers=dict.fromkeys(("go.sum", "sub/go.sum", "sub/uv.lock", "uv.lock"), 900),
    ),
    Row(
        "generated, by .gitattributes",
        do("seq 900 > api/schema.gen.ts"),
        False,
        NOTHING,
        {"api/schema.gen.ts": "left out: .gitattributes says linguist-generated"},
    ),
    Row(
        "not for diffs, by .gitattributes",
        do("seq 900 > table.dat"),
        False,
        NOTHING,
        {"table.dat": "left out: .gitattributes says -diff"},
    ),
    Row(
        "code that the session itself calls generated",
        do("seq 45 > src/more.py; echo '*.py linguist-generated' >> .gitattributes"),
        True,
        sums("46", "2"),
        {
            "src/more.py": CODE,
            ".gitattributes": CODE,
        },
    ),
    Row(
        "code hidden by attributes that git does not see",
        do(
            "seq 45 > src/m.py; echo '*.py binary' > src/.gitattributes;"
            "echo '.git*' > .git/info/exclude"
        ),
        True,
        sums("45", "1"),
        {"src/m.py": CODE},
    ),
    Row(
        "code hidden by the repository's own attributes",
        do("seq 45 > src/m.py; mkdir -p .git/info; echo '*.py -diff' > .git/info/attributes"),
        True,
        sums("45", "1"),
        {"src/m.py": CODE},
    ),
    Row(
        "generated, by its name",
        tree({"api/x_pb2.py": text("x", 900), "web/app.min.js": text("x", 900)}),
        False,
        NOTHING,
        {"api/x_pb2.py": LOCKED, "web/app.min.js": LOCKED},
        numbers={"api/x_pb2.py": 900, "web/app.min.js": 900},
    ),
    Row(
        "generated, by a pattern",
        do("seq 900 > generated/out.py"),
        False,
        NOTHING,
        {"generated/out.py": LOCKED},
        table(Weighting, generated=("/generated/",)),
        numbers={"generated/out.py": 900},
    ),
    Row(
        "in a folder that only looks generated",
        do("seq 45 > generated/out.py"),
        True,
        sums("80", "1"),
        {"generated/out.py": CODE},
        numbers={"generated/out.py": 80},
    ),
    Row(
        "100,000 vendored lines",
        tree({f"vendor/lib/{n}.js": text(f"v{n}", 1000) for n in range(100)}),
        False,
        NOTHING,
        {f"vendor/lib/{n}.js": VENDORED for n in range(100)},
        numbers={f"vendor/lib/{n}.js": 1000 for n in range(100)},
    ),
    Row(
        "vendored code that is ours",
        do("seq 45 > vendor/lib/b.js"),
        True,
        sums("45", "1"),
        {"vendor/lib/b.js": CODE},
        table(Weighting, generated=("!vendor/lib/",)),
        numbers={"vendor/lib/b.js": 45},
    ),
    Row(
        "docs only",
        rewrite("docs/guide.md", 120),
        False,
        sums("12", "0.1"),
        {"docs/guide.md": DOCS},
        numbers={"docs/guide.md": 120},
    ),
    Row(
        "a whole manual",
        tree({"docs/manual.md": text("w", 400)}),
        True,
        sums("40", "0.1"),
        {"docs/manual.md": DOCS},
        numbers={"docs/manual.md": 400},
    ),
    Row(
        "nearly a whole manual",
        tree({"docs/manual.md": text("w", 399)}),
        False,
        sums("39.9", "0.1"),
        {"docs/manual.md": DOCS},
        numbers={"docs/manual.md": 399},
    ),
    Row(
        "a program among the docs",
        tree({"docs/conf.py": text("c", 41)}),
        True,
        sums("41", "1"),
        {"docs/conf.py": CODE},
        numbers={"docs/conf.py": 41},
    ),
    Row(
        "tests only",
        rewrite("tests/test_app.py", 79),
        False,
        sums("39.5", "0.5"),
        {"tests/test_app.py": TESTS},
        numbers={"tests/test_app.py": 79},
    ),
    Row(
        "many tests",
        rewrite("tests/test_app.py", 85),
        True,
        sums("42.5", "0.5"),
        {"tests/test_app.py": TESTS},
        numbers={"tests/test_app.py": 85},
    ),
    Row(
        "code with tests and docs",
        tree(
            {"src/n.py": text("n", 14), "src/n_test.py": text("t", 26), "README.md": text("r", 80)}
        ),
        False,
        sums("37", "1.6"),
        {"src/n.py": CODE, "src/n_test.py": TESTS, "README.md": DOCS},
        numbers={"src/n.py": 14, "src/n_test.py": 26, "README.md": 100},
    ),
    Row(
        "a line in a critical file",
        do(f"echo new >> {CI}"),
        True,
        f"`{CI}` is critical; {sums('1', '1')}",
        {CI: f"critical {CODE}"},
        CRITICAL,
        numbers={CI: 1},
    ),
    Row(
        "an indentation in a critical file",
        do(f"sed -i '3s/^/  /' {CI}"),
        True,
        f"`{CI}` is critical; {sums('0', '1')}",
        {CI: f"critical {CODE}"},
        CRITICAL,
    ),
    Row(
        "a critical file renamed away",
        do(f"git mv {CI} ci.yml"),
        True,
        f"`ci.yml` is critical; {sums('0', '1')}",
        {"ci.yml": f"critical {CODE}, renamed from `{CI}`"},
        CRITICAL,
    ),
    Row(
        "what is critical, ignored and generated",
        do("seq 9 > vendor/lib/a.js"),
        True,
        f"`vendor/lib/a.js` is critical; {sums('100', '1')}",
        {"vendor/lib/a.js": f"critical {CODE}"},
        table(Weighting, critical=("vendor/",), ignore=("vendor/",)),
        numbers={"vendor/lib/a.js": 100},
    ),
    Row(
        "what is ignored",
        rewrite("src/app.py", 150),
        False,
        NOTHING,
        {"src/app.py": "left out: ignored"},
        table(Weighting, ignore=("/src/",)),
        numbers={"src/app.py": 150},
    ),
    Row("merged from main", _merge_main, False, sums("10", "1"), {"src/own.py": CODE}),
    Row(
        "a submodule",
        _submodule,
        False,
        sums("4", "2"),
        {".gitmodules": CODE, "module": CODE},
    ),
    Row(
        "five binaries",
        tree({f"lib/{n}.so": b"\0\xff%d" % n * 999 for n in range(5)}),
        True,
        sums("0", "5"),
        {f"lib/{n}.so": CODE for n in range(5)},
    ),
    Row("a link in place of a file", _type_change, False, sums("10", "1"), {"bin/run.sh": CODE}),
    Row(
        "strange names",
        tree({'a\n"b"\t.py': "x\n", os.fsdecode(b"\xff \xe9.py"): "x\n", ":(top) *.py": "x\n"}),
        False,
        sums("3", "3"),
        {'a\n"b"\t.py': CODE, os.fsdecode(b"\xff \xe9.py"): CODE, ":(top) *.py": CODE},
    ),
    Row(
        "committed",
        do("seq 99 > src/more.py; git add .; git commit -qm more; git commit -q --amend -m most"),
        True,
        sums("99", "1"),
        {"src/more.py": CODE},
    ),
    Row(
        "at a threshold of nothing",
        do("echo >> src/app.py; echo x >> src/util.py"),
        True,
        "1 weighted line (threshold 0), 1 weighted file (threshold 5)",
        {"src/util.py": CODE, "src/app.py": SPACE},
        table(Weighting, min_lines=0.0),
    ),
    Row(
        "what weighs nothing",
        rewrite("docs/guide.md", 120),
        False,
        NOTHING,
        {"docs/guide.md": "left out: documentation, weight 0"},
        table(Weighting, weights=(1.0, 0.5, 0.0), min_lines=0.0),
        numbers={"docs/guide.md": 120},
    ),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A repository with an hour's history, to be copied, and its first point."""
    repo = Repo(tmp_path_factory.mktemp("template"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Test")
            patch.setenv(f"GIT_{role}_EMAIL", "test@example.invalid")
        long_ago(patch)
        repo.git("init", "-q", "-b", "main")
        tree(BEFORE)(repo)
        repo.commit_all("first")
        right_now(patch)
        patch.setenv("XDG_STATE_HOME", "none")  # so the memory of files is in the repository
        return Watched(repo)


def assess(watched: Watched, review: Weighting) -> Significance:
    found = tuple(watched.found().values())
    return weigh(found, review)


def test_numbers() -> None:
    for row in ROWS:
        if row.numbers:
            changes = tuple(FileDifference(path, "M", added=n) for path, n in row.numbers.items())
            check(row, weigh(changes, row.review))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=row.what,
            marks=[pytest.mark.thorough] if row.numbers else [],
        )
        for row in ROWS
    ],
)
def test_changes(row: Row, template: Watched, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", str(template.repo.path), str(tmp_path / "repo")], check=True)
    (tmp_path / "repo/.git/gitgates/files.at").unlink()
    watched = Watched(Repo(tmp_path / "repo"), template.start)
    row.act(watched.repo)
    check(row, assess(watched, row.review))


def check(row: Row, found: Significance) -> None:
    assert found.why == row.why, row.what
    assert {one.path: one.why for one in found.files} == row.each
    assert found.significant is row.significant
    assert found.counts is (row.why != NOTHING)
