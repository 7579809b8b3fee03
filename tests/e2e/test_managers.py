"""Beside the real hook managers: each order of installing and uninstalling them and us.

husky, simple-git-hooks and lefthook come from npm (`make e2e` installs them, pinned), pre-commit
and prek from our own environment.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from install_support import BIN, Repo, add_printed_lines, make_repo

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("GITGATES_E2E_MANAGERS", ROOT / ".venv/managers")) / "node_modules"
GATE = '[tool.gitgates.gates.g]\ncommand = "echo gates >>../log; test ! -e bad"\n'
FRAMEWORK = (
    "repos:\n- repo: local\n  hooks:\n  - id: t\n    name: t\n    language: system\n"
    "    entry: sh -c 'echo theirs >>../log'\n    always_run: true\n    pass_filenames: false\n"
)


class Manager(NamedTuple):
    file: str
    text: str
    install: str
    uninstall: str  # as its documentation says


MANAGERS = {
    "pre-commit": Manager(
        ".pre-commit-config.yaml", FRAMEWORK, "pre-commit install", "pre-commit uninstall"
    ),
    "lefthook": Manager(
        "lefthook.yml",
        "# mine\npre-commit:\n  jobs:\n    - run: echo theirs >>../log\n",
        "lefthook install",
        "lefthook uninstall",
    ),
    "husky": Manager(
        ".husky/pre-commit", "echo theirs >>../log\n", "husky", "git config --unset core.hooksPath"
    ),
    "prek": Manager(".pre-commit-config.yaml", FRAMEWORK, "prek install", "prek uninstall"),
    "simple-git-hooks": Manager(
        "package.json",
        '{\n  "simple-git-hooks": {\n    "pre-commit": "echo theirs >>../log"\n  }\n}\n',
        "simple-git-hooks",
        f"node {PROGRAMS}/simple-git-hooks/uninstall.js",
    ),
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path / "home")
    made.env["PATH"] = f"{PROGRAMS}/.bin:{BIN}:{os.environ['PATH']}"
    made.configure("pre-commit", gate=GATE)
    return made


class Beside:
    """A repository with a manager, and what its next commit runs."""

    def __init__(self, repo: Repo, name: str) -> None:
        self.repo = repo
        self.name = name
        self.manager = MANAGERS[name]
        repo.write(self.manager.file, self.manager.text)
        self.take_up = self.manager.install
        self.added: list[str] = []
        self.commits = 0

    def do(self, step: str) -> str:
        """Do one of: theirs, ours, via; with a minus before it, take it out."""
        command = {
            "theirs": self.take_up,
            "-theirs": self.manager.uninstall,
            "ours": "gitgates install-hooks",
            "via": f"gitgates install-hooks --via {self.name}",
            "-ours": "gitgates uninstall-hooks",
        }[step]
        done = self.repo.run(*command.removeprefix("npx ").split())
        assert done.returncode == 0, (step, done.stdout, done.stderr)
        if step == "via" and "next: " in done.stdout:
            command = done.stdout.partition("next: ")[2].partition("\n")[0]
            self.take_up = command.removeprefix("npx ")
            self.added = self.added or add_printed_lines(self.repo, done.stdout)
        return done.stdout

    def take_out(self) -> None:
        """Remove the lines that were added, by hand."""
        for file in self.added:
            (self.repo.path / file).unlink(missing_ok=True)
        self.repo.write(self.manager.file, self.manager.text)
        self.added, self.take_up = [], self.manager.install

    def ran(self) -> list[str]:
        """Commit; return what ran for that: nothing twice, and the doctor tells of the gates."""
        log = self.repo.path.parent / "log"
        log.write_text("")
        self.commits += 1
        done = self.repo.commit(f"file{self.commits}")
        assert done.returncode == 0, done.stderr
        ran = sorted(log.read_text().split())
        assert max(Counter(ran).values(), default=0) <= 1, ran
        if ran == ["theirs"] or not ran:
            assert self.repo.gitgates("doctor")[0] == 1
        return ran

    def refuses(self) -> bool:
        """Return whether a commit whose gate fails is refused."""
        done = self.repo.commit("bad")
        self.repo.git("rm", "-qf", "bad")
        return done.returncode == 1

    def assert_clean(self) -> None:
        """See that nothing of ours is left in the hooks folder, and in the manager's file."""
        folder = self.repo.path / ".git/hooks"
        for name in self.repo.hooks():
            assert b"Installed by gitgates" not in (folder / name).read_bytes()
            assert "gitgates" not in name
        assert (self.repo.path / self.manager.file).read_text() == self.manager.text


BOTH = ["gates", "theirs"]
OVER = {  # what runs after theirs was installed over ours
    "pre-commit": BOTH,
    "prek": BOTH,
    "lefthook": ["theirs"],
    "husky": ["theirs"],
    "simple-git-hooks": ["theirs"],
}
ALONE: dict[str, list[str]] = {  # what runs when theirs, over ours, was taken out
    **{name: ["gates"] for name in ("pre-commit", "prek", "lefthook", "husky")},
    "simple-git-hooks": [],  # removes whatever hook is there
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("name", MANAGERS)
def test_ours_after_theirs(repo: Repo, name: str) -> None:
    beside = Beside(repo, name)
    beside.do("theirs")
    assert beside.ran() == ["theirs"]
    assert f"gitgates install-hooks --via {name}" in beside.do("ours")
    assert beside.ran() == BOTH
    assert beside.refuses()
    beside.do("-ours")
    assert beside.ran() == ["theirs"]
    beside.assert_clean()
    beside.do("-theirs")
    assert beside.ran() == []
    # And theirs taken out first: ours knows nothing of that, and still leaves what was there.
    beside.do("theirs")
    beside.do("ours")
    beside.do("-theirs")
    beside.do("-ours")
    assert "gates" not in beside.ran()
    for kept in repo.path.glob(".git/hooks/*.before-gitgates"):
        assert name == "simple-git-hooks"
        kept.unlink()
    beside.assert_clean()


@pytest.mark.nightly
@pytest.mark.parametrize("name", MANAGERS)
def test_theirs_after_ours(repo: Repo, name: str) -> None:
    beside = Beside(repo, name)
    for first, second in (("-ours", "-theirs"), ("-theirs", "-ours")):
        beside.do("ours")
        assert beside.ran() == ["gates"]
        beside.do("theirs")
        assert beside.ran() == OVER[name]
        beside.do(first)
        assert beside.ran() == (["theirs"] if first == "-ours" else ALONE[name])
        beside.do(second)
        assert beside.ran() == []
        beside.assert_clean()


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", MANAGERS)
def test_theirs_again_over_ours(repo: Repo, name: str) -> None:
    beside = Beside(repo, name)
    for step in ("theirs", "ours", "theirs"):
        beside.do(step)
    assert beside.ran() == OVER[name]
    beside.do("-ours")
    assert beside.ran() == ["theirs"]
    beside.assert_clean()
    # Ours again over theirs over ours.
    for step in ("ours", "theirs", "ours"):
        beside.do(step)
    assert beside.ran() == BOTH
    beside.do("-ours")
    assert beside.ran() == ["theirs"]
    beside.assert_clean()


@pytest.mark.samples(2)
@pytest.mark.parametrize("name", MANAGERS)
def test_joined(repo: Repo, name: str) -> None:
    beside = Beside(repo, name)
    for step in ("theirs", "ours"):
        beside.do(step)
    assert "Add to " in beside.do("via")
    assert beside.refuses()  # ours is there until theirs runs the gates
    for step in ("theirs", "via", "theirs"):
        beside.do(step)
    assert beside.ran() == BOTH
    assert beside.refuses()
    assert repo.gitgates("doctor")[0] == 0
    assert f"{beside.added[0]} still runs the gates" in beside.do("-ours")
    beside.take_out()
    beside.do("theirs")
    assert beside.ran() == ["theirs"]
    for kept in repo.path.glob(".git/hooks/*.before-gitgates"):
        assert name == "simple-git-hooks"  # which writes over our hook, whatever it is
        kept.unlink()
    beside.assert_clean()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["lefthook", "husky", "simple-git-hooks"])
def test_what_is_pushed_is_checked_not_what_is_checked_out(repo: Repo, name: str) -> None:
    repo.write("pyproject.toml", f'{GATE}[tool.gitgates.hooks.pre-push]\ngates = ["g"]\n')
    beside = Beside(repo, name)
    for step in ("via", "theirs"):
        beside.do(step)
    far = repo.path.parent / "far.git"
    repo.git("init", "-q", "--bare", far)
    repo.git("remote", "add", "origin", far)
    repo.git("add", "pyproject.toml")  # the configuration that is pushed is the one that counts
    assert repo.commit("a").returncode == 0
    repo.git("push", "-qu", "origin", "main")
    repo.git("checkout", "-qb", "other")
    assert repo.commit("bad").returncode == 0
    repo.git("checkout", "-q", "main")
    done = repo.run("git", "push", "-q", "origin", "other")
    assert "gitgates pre-push: blocked" in done.stdout + done.stderr
    assert done.returncode == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", MANAGERS)
def test_what_init_proposes_runs_once(repo: Repo, name: str) -> None:
    """As a person does it: the manager is there, then init, then what init names as next."""
    beside = Beside(repo, name)
    beside.do("theirs")
    (repo.path / "pyproject.toml").unlink()
    repo.write("Makefile", "lint:\n\techo gates >>../log\ntest:\n\ttrue\n")
    said = repo.gitgates("init")[1]
    step = said.partition("next: ")[2].partition(", and try")[0]
    assert step == f"gitgates install-hooks{'' if name in OURS_RUNS else f' --via {name}'}"
    beside.do("ours" if name in OURS_RUNS else "via")
    if name not in OURS_RUNS:
        beside.do("theirs")  # the command that install-hooks names
    repo.git("add", "-A")
    log = repo.path.parent / "log"
    log.write_text("")
    done = repo.commit("file")
    assert done.returncode == 0, done.stderr
    assert log.read_text().split() == ["theirs"]
    assert repo.gitgates("doctor")[0] == 0
    assert "twice" not in repo.gitgates("doctor")[1]


OURS_RUNS = ("pre-commit", "prek")  # a gate of ours runs all of their hooks
