"""`gitgates init` in real projects, called as a person calls it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import forked
import pytest

from gitgates.config import load

_INTERPRETERS = ("PYTHON", "LC_", "LANG")  # variables of the one that runs the tests


class Project:
    """A folder with files, and gitgates run in it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        own = {name: value for name, value in os.environ.items() if name.startswith(_INTERPRETERS)}
        self._env = own | {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def run(self, *argv: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=self.root / cwd,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )

    def init(self, *args: str, cwd: str = ".") -> tuple[int, str, str]:
        done = self.gitgates("init", *args, cwd=cwd)
        said, trouble = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in trouble
        return done.returncode, said, trouble

    def gitgates(self, *args: str, cwd: str = ".") -> subprocess.CompletedProcess[bytes]:
        return forked.run(args, str(self.root / cwd), self._env, b"")

    def files(self) -> dict[str, bytes]:
        return {entry.name: entry.read_bytes() for entry in self.root.iterdir() if entry.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "my project"
    root.mkdir()
    made = Project(root, tmp_path)
    assert made.run("git", "init", "-q").returncode == 0
    return made


MAKEFILE = "format-check:\n\tblack --check .\nlint:\n\truff check\ntest:\n\tpytest\n"
PYPROJECT = '[project]\nname = "x"'
TABLES = """\
[tool.gitgates.gates.format]
description = "Formatting"
command = "make format-check"
timeout = "1m"

[tool.gitgates.gates.lint]
description = "Linting"
command = "make lint"
timeout = "2m"

[tool.gitgates.gates.test]
description = "Tests"
command = "make test"
timeout = "10m"
reuse = true # while everything it reads is unchanged

[tool.gitgates.hooks.pre-commit]
gates = ["format", "lint"]
strategy = "collect"

[tool.gitgates.hooks.pre-push]
gates = ["format", "lint", "test"]
strategy = "collect"

[tool.gitgates.hooks.manual]
gates = ["format", "lint", "test"]
strategy = "collect"
"""
FOUND = """\
languages: Python
  format  make format-check  (Makefile: format-check): {}
  lint    make lint  (Makefile: lint): {}
  test    make test  (Makefile: test): {}
"""
NEW = ("not tried; pre-commit", "not tried; pre-commit", "not tried; pre-push")
REMARKS = """\
passes of test are reused while everything it reads is unchanged
not tried: gitgates init --dry-run --try shows which commands work here
"""
NEXT = "next: gitgates install-hooks, and try the gates now: gitgates run\n"


@pytest.mark.slow
def test_writes_what_it_finds_and_then_nothing_more(project: Project) -> None:
    project.write("Makefile", MAKEFILE)
    project.write("pyproject.toml", PYPROJECT)
    assert project.init() == (
        0,
        FOUND.format(*NEW)
        + "pyproject.toml: added 3 gates: format, lint, test; "
        + "added 3 hooks: pre-commit, pre-push, manual\n"
        + REMARKS
        + NEXT,
        "",
    )
    written = f"{PYPROJECT}\n\n{TABLES}".encode()
    assert project.files() == {"Makefile": MAKEFILE.encode(), "pyproject.toml": written}
    found = FOUND.format(*["already there"] * 3)
    assert project.init() == (0, found + "pyproject.toml: nothing to add\n", "")
    assert project.files()["pyproject.toml"] == written
    checked = project.gitgates("check").stdout
    assert checked == b"pyproject.toml: 3 gates, 3 hooks, no problems\n"


@pytest.mark.slow
def test_a_dry_run_prints_a_diff_that_git_applies(project: Project) -> None:
    project.write("Makefile", MAKEFILE)
    for before in (None, PYPROJECT, "[project]\r\nname = 'x'\r\n"):
        if before is not None:
            project.write("pyproject.toml", before)
        files = project.files()
        status, diff, said = project.init("--dry-run")
        assert (status, project.files()) == (0, files)
        assert said.endswith(REMARKS)
        (project.root / "p.diff").write_bytes(project.gitgates("init", "--dry-run").stdout)
        assert project.run("git", "apply", "p.diff").stderr == ""
        (project.root / "p.diff").unlink()
        applied = project.files()
        project.write("pyproject.toml", before or "")
        if before is None:
            (project.root / "pyproject.toml").unlink()
            (project.root / "gitgates.toml").unlink()
        project.init()
        assert project.files() == applied
        assert diff.startswith("--- ")
        if before is None:
            (project.root / "gitgates.toml").unlink()


@pytest.mark.slow
def test_only_what_is_missing_is_added(project: Project) -> None:
    old = """\
# mine
[tool.gitgates.gates.style]
command = "make lint" # under another name

[tool.gitgates.gates.test]
command = "pytest -x"

[tool.gitgates.hooks.pre-push]
gates = [
    "style", # first
    "test"  # then
]

[tool.other]
"""
    project.write("Makefile", MAKEFILE + "mypy:\n\tmypy src\n")
    project.write("pyproject.toml", old)
    status, said, trouble = project.init()
    assert (status, trouble) == (0, "")
    assert said.endswith(
        "pyproject.toml: added 2 gates: format, typecheck; added 1 hook: pre-commit; "
        f"added to pre-push: format, typecheck\n{REMARKS.splitlines()[1]}\n{NEXT}"
    )
    new = """
[tool.gitgates.gates.format]
description = "Formatting"
command = "make format-check"
timeout = "1m"

[tool.gitgates.gates.typecheck]
description = "Types"
command = "make mypy"
timeout = "3m"

[tool.gitgates.hooks.pre-commit]
gates = ["format", "typecheck"]
strategy = "collect"
"""
    longer = old.replace('"test"  # then\n', '"test",  # then\n    "format",\n    "typecheck"\n')
    assert project.files()["pyproject.toml"].decode() == longer + new


@pytest.mark.slow
def test_gates_without_hooks_get_their_hooks(project: Project) -> None:
    project.write("Makefile", "lint:\n\tx\n")
    project.write("gitgates.toml", '[gates.lint]\ncommand = "mine"\n')
    assert project.init()[1].endswith(
        "gitgates.toml: added 3 hooks: pre-commit, pre-push, manual\n"
        "next: gitgates install-hooks, and try the gates now: gitgates run\n"
    )
    assert project.files()["gitgates.toml"].decode() == (
        '[gates.lint]\ncommand = "mine"\n\n'
        '[hooks.pre-commit]\ngates = ["lint"]\nstrategy = "collect"\n\n'
        '[hooks.pre-push]\ngates = ["lint"]\nstrategy = "collect"\n\n'
        '[hooks.manual]\ngates = ["lint"]\nstrategy = "collect"\n'
    )


@pytest.mark.slow
def test_nothing_found_writes_nothing(project: Project) -> None:
    project.write("README.md", "hello")
    status, said, trouble = project.init()
    assert (status, trouble) == (0, "")
    words = said.split()
    assert words[:6] == ["found", "no", "check", "to", "propose", "in"]
    assert {"justfile,", "package.json,", "go.mod,", "composer.json,"} < {*words}
    assert "  [gates.check]\n" in said
    assert project.files() == {"README.md": b"hello"}
    assert project.init("--dry-run")[:2] == (0, "")


@pytest.mark.slow
def test_a_broken_file_is_said_and_the_others_count(project: Project) -> None:
    project.write("package.json", "{,}")
    project.write("Makefile", b"test:\n\t\xff\n")
    project.write("test.sh", "#!/bin/sh\n")
    (project.root / "test.sh").chmod(0o755)
    status, said, trouble = project.init()
    assert status == 0
    assert "gitgates.toml: added 1 gate: test; added 2 hooks: pre-push, manual\n" in said
    assert trouble.splitlines() == [
        "Makefile: cannot be read: byte 8 is not UTF-8; ignored",
        (
            "package.json: is not valid JSON: Expecting property name enclosed in double quotes: "
            "line 1 column 2 (char 1); ignored"
        ),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pyproject", "expected"),
    [
        ("[tool", "gitgates: pyproject.toml: is not valid TOML: "),
        ("\ufeff[a]\n", "gitgates: pyproject.toml: starts with a byte order mark"),
        ("[tool.gitgates]\njbs=1\n", "gitgates: pyproject.toml: tool.gitgates.jbs: unknown key"),
    ],
)
def test_a_configuration_with_problems_is_left(
    project: Project, pyproject: str, expected: str
) -> None:
    project.write("Makefile", MAKEFILE)
    project.write("pyproject.toml", pyproject)
    status, said, trouble = project.init()
    assert (status, said) == (78, "")
    assert trouble.startswith(expected)
    assert project.files()["pyproject.toml"] == pyproject.encode()


@pytest.mark.slow
def test_from_a_folder_inside_and_outside_of_git(project: Project, tmp_path: Path) -> None:
    project.write("Makefile", MAKEFILE)
    project.write("src/x", "")
    project.init(cwd="src")
    assert sorted(project.files()) == ["Makefile", "gitgates.toml"]
    plain = Project(tmp_path / "plain", tmp_path)
    (tmp_path / "gitgates.toml").write_text("")  # of something else
    plain.write("Makefile", MAKEFILE)
    status, said, trouble = plain.init()
    assert status == 0
    assert "install-hooks" not in said  # there is nowhere to install them yet
    assert trouble == (
        f"gitgates: {plain.root}: not a git repository, so nothing is tried, and no hook can be "
        "installed yet\n"
        "  Change to a repository, or create one with: git init\n"
    )
    config = load.load(str(plain.root))
    assert config is not None
    assert [gate.name for gate in config.gates] == ["format", "lint", "test"]


@pytest.mark.slow
def test_a_file_that_cannot_be_written(project: Project) -> None:
    project.write("Makefile", MAKEFILE)
    (project.root / "gitgates.toml").symlink_to("no/such/folder.toml")
    status, _, trouble = project.init()
    assert (status, trouble) == (
        78,
        (
            "gitgates: gitgates.toml: is a broken symbolic link\n"
            f"  Fix the link, or remove it: {project.root}/gitgates.toml\n"
        ),
    )


# A few lines that stand for billions of values, by aliases and by merge keys.
BOMB = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{{key}[{', '.join([f'*a{n - 1}'] * 9)}]}}\n"
    for key in ("<<: ", "k: ")
    for n in range(1, 10)
)
HOOKS_BOMB = f"{BOMB}repos:\n- repo: local\n  hooks: [{{id: *a9}}]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Taskfile.yml", BOMB),
        (".pre-commit-config.yaml", HOOKS_BOMB),
        ("Taskfile.yml", "a: !!bool x\n"),
        ("Taskfile.yml", "a: !!int ''\n"),
        ("Taskfile.yml", "a: !!timestamp x\n"),
        ("Taskfile.yml", "[" * 100_000),
        ("mise.toml", "a = " + "1" * 5_000),
        ("lefthook.yml", BOMB),
    ],
)
def test_a_hostile_file_is_named_and_costs_no_time(project: Project, name: str, text: str) -> None:
    project.write(name, text)
    project.write("Makefile", "test:\n\tpytest\n")
    status, said, trouble = project.init("--dry-run")
    assert status == 0
    assert f"{name}: is not valid" in trouble
    assert 'command = "make test"' in said


@pytest.mark.slow
def test_nothing_is_run_unasked(project: Project) -> None:
    project.write("Makefile", f"test:\n\techo tried >> {project.root.parent}/log\n")
    for args, runs in (((), 0), (("--no-try",), 0), (("--try",), 1)):
        status, _said, trouble = project.init("--dry-run", *args)
        assert (status, "not tried" in trouble) == (0, not runs)
        assert (project.root.parent / "log").exists() == bool(runs)
    assert list(project.files()) == ["Makefile"]


STOP = '[hooks.Stop]\ngates = ["format", "lint", "test"]\nstrategy = "collect"\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "args", "expected"),
    [
        ({"Makefile": MAKEFILE}, ("--agent", "claude"), STOP),
        ({"Makefile": MAKEFILE, ".claude/x": ""}, (), STOP),
        ({"Makefile": MAKEFILE, "AGENTS.md": ""}, (), ""),
        (
            {"ruff.toml": "", ".venv/bin/ruff": ""},
            ("--agent", "claude"),
            STOP.replace('"format", ', "").replace(', "test"', "")
            + '\n[hooks.PostToolBatch]\nenabled_tools = ["Edit", "Write"]\ngates = ["lint"]\n',
        ),
    ],
)
def test_hooks_of_an_agent(
    project: Project, files: dict[str, str], args: tuple[str, ...], expected: str
) -> None:
    for name, content in files.items():
        project.write(name, content)
        (project.root / name).chmod(0o755)
    assert project.init(*args)[::2] == (0, "")
    written = project.files()["gitgates.toml"].decode()
    assert written.partition("[hooks.Stop]")[2] == expected.removeprefix("[hooks.Stop]")
    assert project.init(*args)[::2] == (0, "")
    assert project.files()["gitgates.toml"].decode() == written


def test_a_review_is_not_proposed_unasked(project: Project) -> None:
    project.write("CLAUDE.md", "")
    assert "found no check to propose" in project.init()[1]
    project.write("Makefile", MAKEFILE)
    said = project.init()[1]
    assert 'to have an agent\'s changes reviewed, add "review" to Stop\n' in said


@pytest.mark.slow
def test_an_agents_hooks_are_not_forced_on_who_has_hooks(project: Project) -> None:
    project.write("CLAUDE.md", "")
    project.write(
        "gitgates.toml", '[gates.lint]\ncommand = "x"\n[hooks.pre-push]\ngates = ["lint"]\n'
    )
    project.init()
    assert "Stop" not in project.files()["gitgates.toml"].decode()
    project.init("--agent", "claude")
    assert (
        project.files()["gitgates.toml"]
        .decode()
        .endswith('[hooks.Stop]\ngates = ["lint"]\nstrategy = "collect"\n')
    )


def test_hooks_are_proposed_for_the_agents_that_are_used(project: Project) -> None:
    """Every project of GitHub has `.github`; Copilot's hooks have a folder of their own in it."""
    project.write("Makefile", MAKEFILE)
    project.write(".github/workflows/ci.yml", "")
    project.init()
    assert "Stop" not in project.files()["gitgates.toml"].decode()
    project.write("gitgates.toml", "")
    project.write(".github/hooks/x.json", '{"hooks": {}}')
    project.write(".gemini/settings.json", '{"hooks": {}}')
    _status, said, _trouble = project.init()
    assert "gitgates install-hooks --agent copilot --agent gemini, and" in said
    assert "[hooks.Stop]" in project.files()["gitgates.toml"].decode()
