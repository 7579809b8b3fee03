"""install-hooks --pre-commit: our block in others' configuration, and out of it byte for byte."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
import yaml
from install_support import BIN, Repo, make_repo

from gitgates.core.errors import ConfigError
from gitgates.setup.install import managers
from gitgates.setup.install.framework import FILE

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = """\
# gitgates: this block is written by `gitgates install-hooks --via pre-commit`
- repo: local
  hooks:
  - id: gitgates-pre-commit
    name: gitgates pre-commit
    entry: gitgates pre-commit-hook pre-commit
    language: system
    stages: [pre-commit]
    always_run: true
    pass_filenames: true
    require_serial: true
# gitgates: the block ends here
"""
INDENTED = "".join(f"  {line}" for line in BLOCK.splitlines(keepends=True))
STAGES = ("pre-commit",)
SHAPES = [
    "repos:\n- repo: local\n  hooks: []\n{0}",
    "repos:\n- repo: local\n  hooks:\n  - id: a\n    args:\n{0}",
    "repos:\n  - repo: local\n    hooks: [{{id: a, name: 'b'}}]  # why\n{1}\n# the end\n",
    "# before\nci: {{skip: [a]}}\nrepos:\n- repo: a\n  rev: >-\n    v1\n{0}fail_fast: true\n",
    "---\nrepos:\n  # first\n  - &x {{repo: a}}\n  - *x\n{1}",
    "'repos':\n- repo: a\n\n{0}\n\ndefault_stages: [commit-msg]\n".replace("\n\n{0}", "\n{0}\n"),
    "\ufeffrepos:\n- repo: ü\n{0}",
    "exclude: |\n  repos:\n  - x\nrepos:\n- repo: a\n{0}",
]


def put(text: str | None, stages: tuple[str, ...]) -> str:
    return managers.add(text and without(text), "pre-commit", FILE, stages)


def without(text: str) -> str | None:
    return managers.remove(text, FILE)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_block_goes_behind_the_last_repository(shape: str) -> None:
    before = shape.format("", "")
    after = put(before, STAGES)
    assert after == shape.format(BLOCK, INDENTED)
    assert put(after, STAGES) == after
    assert without(after) == before
    assert yaml.safe_load(after)["repos"][:-1] == yaml.safe_load(before)["repos"]
    # Other stages: the same place.
    more = put(after, ("pre-commit", "post-commit"))
    assert managers.hooks_in(more) == ("pre-commit", "post-commit")
    assert without(more) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_other_line_ends_and_no_line_end(shape: str) -> None:
    crlf = shape.format("", "").replace("\n", "\r\n")
    for before in (crlf, crlf.rstrip("\r\n"), shape.format("", "").rstrip("\n")):
        after = put(before, STAGES)
        assert without(after) == before
        assert put(after, STAGES) == after
        assert ("\r\n" in after) == ("\r\n" in before)
        assert after.count("\n") == after.count("\r\n") or "\r\n" not in before


def test_a_file_of_our_own() -> None:
    text = put(None, STAGES)
    assert text == f"# made by `gitgates install-hooks --via pre-commit`\nrepos:\n{BLOCK}"
    assert put(text, STAGES) == text
    assert without(text) is None
    longer = f"{text}fail_fast: true\n"
    rest = without(longer)
    assert rest is not None
    assert yaml.safe_load(rest) == {"repos": [], "fail_fast": True}
    assert put(rest, STAGES) == longer


def test_an_empty_list() -> None:
    before = "# mine\nrepos: []\nfail_fast: true\n"
    after = put(before, STAGES)
    assert after == f"# mine\nrepos:\n{BLOCK}fail_fast: true\n"
    assert without(after) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repos: [\n", "is not valid YAML"),
        ("a: 1\n---\nb: 2\n", "is not valid YAML"),
        ("repos: " + "[" * 10_000, "is not valid YAML: it is nested"),
        ("a: !!bool x\nrepos: []\n", "is not valid YAML: a value does not fit its tag"),
        ("", "it has no list `repos`"),
        ("- repo: a\n", "it has no list `repos`"),
        ("repos:\n", "it has no list `repos`"),
        ("repos: x\n", "it has no list `repos`"),
        ("repos: [{repo: a}]\n", "is in brackets"),
        ("repos:\n- repo: a\nrepos:\n- repo: b\n", "cannot be added"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        put(text, STAGES)


def test_a_block_without_its_end_is_left_alone() -> None:
    text = f"repos:\n{BLOCK}".replace("# gitgates: the block ends here\n", "")
    with pytest.raises(ConfigError, match="the end of the gitgates block is unknown"):
        without(text)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path / "home")
    made.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
    made.configure("pre-commit", "commit-msg", "manual", "Stop", gate=GATE)
    return made


GATE = '[tool.gitgates.gates.g]\npass_files = true\ncommand = "! grep -n ^BAD"\n'


@pytest.mark.slow
def test_a_new_configuration(repo: Repo) -> None:
    code, out, err = repo.gitgates("install-hooks", "--pre-commit")
    assert (code, out, err) == (
        0,
        (
            ".pre-commit-config.yaml: gitgates hooks were added: pre-commit, pre-merge-commit, "
            "commit-msg, manual\n"
            "pre-commit installed at .git/hooks/pre-commit\n"
            "pre-commit installed at .git/hooks/pre-merge-commit\n"
            "pre-commit installed at .git/hooks/commit-msg\n"
        ),
        "",
    )
    import_module("pre_commit.clientlib").load_config(str(repo.path / FILE))
    assert repo.run("prek", "validate-config").returncode == 0
    repo.git("add", "-A")
    assert repo.git("commit", "-qm", "fine", "--no-verify") == ""
    done = repo.commit("a", "BAD\n")
    assert done.returncode == 1
    assert "gitgates pre-commit: blocked: gate `g` failed" in done.stderr
    repo.hook("pre-commit").rename(repo.path / "aside")  # each start takes a third of a second
    done = repo.run("git", "commit", "-qm", "BAD")
    assert "gitgates commit-msg: blocked: gate `g` failed" in done.stderr

    (repo.path / "aside").rename(repo.hook("pre-commit"))
    again = repo.gitgates("install-hooks", "--pre-commit")
    assert again[1].startswith(".pre-commit-config.yaml: gitgates hooks are already up to date\n")
    code, out, err = repo.gitgates("uninstall-hooks", "--pre-commit")
    assert (code, out, err) == (
        0,
        (
            ".pre-commit-config.yaml: removed; it contained only gitgates hooks\n"
            "pre-commit uninstalled\npre-merge-commit uninstalled\ncommit-msg uninstalled\n"
        ),
        "",
    )
    assert not (repo.path / FILE).exists()
    assert repo.hooks() == []
    assert repo.gitgates("uninstall-hooks", "--pre-commit") == (
        0,
        "gitgates: no gitgates hooks in the files of pre-commit\n",
        "",
    )


@pytest.mark.slow
def test_a_configuration_of_others_comes_back_with_its_mode_and_link(repo: Repo) -> None:
    text = b"# mine\r\nrepos:\r\n  - repo: local\r\n    hooks: []"
    real = repo.write("shared.yaml", text, 0o640)
    (repo.path / FILE).symlink_to("shared.yaml")
    repo.keep("commit-msg")
    assert repo.gitgates("install-hooks")[0] == 0  # ours give way to pre-commit's
    code, out, _ = repo.gitgates("install-hooks", "--pre-commit", "-t", "commit-msg")
    assert (code, out) == (
        0,
        (
            ".pre-commit-config.yaml: gitgates hooks were added: commit-msg\n"
            ".git/hooks/commit-msg: removed; the previous hook was restored "
            "(commit-msg.before-gitgates)\n"
            "Running in migration mode with existing hooks at .git/hooks/commit-msg.legacy\n"
            "Use -f to use only pre-commit.\n"
            "pre-commit installed at .git/hooks/commit-msg\n"
        ),
    )
    assert real.read_bytes().startswith(text + b"\r\n  # gitgates")
    assert repo.gitgates("uninstall-hooks", "--pre-commit")[:2] == (
        0,
        (
            ".pre-commit-config.yaml: gitgates hooks were removed\n"
            "gitgates: pre-commit stays installed for the other hooks in that file\n"
            "  If it is no longer needed: pre-commit uninstall -t commit-msg\n"
        ),
    )
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (text, 0o640)
    assert (repo.path / FILE).is_symlink()


@pytest.mark.slow
def test_refusals_change_nothing(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "h")
    assert repo.gitgates("install-hooks", "--pre-commit") == (
        74,
        "",
        (
            "gitgates: core.hooksPath is `h` (local setting, .git/config): pre-commit refuses "
            "to install hooks while this is set"
            "\n  Unset it: git config --unset-all core.hooksPath\n"
        ),
    )
    assert not (repo.path / FILE).exists()
    repo.git("config", "--unset", "core.hooksPath")
    repo.write(FILE, b"\xff")
    assert repo.gitgates("install-hooks", "--pre-commit")[0] == 78
    repo.write(FILE, "repos: {}\n")
    assert repo.gitgates("install-hooks", "--pre-commit")[0] == 78
    assert (repo.path / FILE).read_text() == "repos: {}\n"
    assert repo.gitgates("install-hooks", "--pre-commit", "-t", "pre-auto-gc")[0] == 64
    repo.configure("pre-auto-gc", "Stop", gate=GATE)
    assert repo.gitgates("install-hooks", "--pre-commit")[0] == 78
    assert repo.hooks() == []


@pytest.mark.thorough
@pytest.mark.slow
def test_the_persons_own_environment_stays(repo: Repo) -> None:
    venv = str(BIN.parent)
    repo.configure("pre-commit", gate='[tool.gitgates.gates.g]\ncommand = "env >env.log"\n')
    repo.gitgates("install-hooks", "--pre-commit")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "a", VIRTUAL_ENV=venv)
    env = (repo.path / "env.log").read_text().splitlines()
    assert f"VIRTUAL_ENV={venv}" in env
    path = next(line for line in env if line.startswith("PATH="))
    assert str(BIN) in path.removeprefix("PATH=").split(":")
