"""`gitgates convert --prove`: real managers and gitgates make the same commits, in copies."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from conftest import Repo

BIN = os.path.dirname(sys.executable)
PATH = {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

NO_BAD = "! grep -n bad"
LEFTHOOK = """\
pre-commit:
  parallel: true
  commands:
    bad: {glob: "*.txt", run: "! grep -n bad {staged_files}"}
    mend: {glob: "*.md", run: "sed -i.b s/teh/the/ {staged_files}; rm *.b", stage_fixed: true}
commit-msg:
  commands:
    lower: {run: "grep -q '^[a-z]' {1}"}
"""
FRAMEWORK = """\
default_install_hook_types: [pre-commit, commit-msg]
default_stages: [pre-commit]
repos:
- repo: local
  hooks:
  - {id: bad, name: bad, language: system, entry: sh -c '! grep -n bad "$@"' --, types: [text]}
  - {id: kept, name: kept, language: fail, entry: no such file, files: ^never$}
  - {id: lower, name: lower, language: system, entry: "grep -q '^[a-z]'", stages: [commit-msg]}
"""
MANAGERS = {
    "lefthook": {"lefthook.yml": LEFTHOOK},
    "pre-commit": {".pre-commit-config.yaml": FRAMEWORK},
    "husky": {
        ".husky/pre-commit": "if git grep --cached -n bad -- '*.txt'; then exit 1; fi\n",
        ".husky/commit-msg": "grep -q '^[a-z]' $1\n",
    },
    "simple-git-hooks": {
        "package.json": json.dumps(
            {
                "simple-git-hooks": {
                    "pre-commit": "! git grep --cached -n bad -- '*.txt'",
                    "commit-msg": "grep -q '^[a-z]' $1",
                }
            }
        )
    },
}


def history(repo: Repo, files: dict[str, str]) -> None:
    """Commit files of a manager, and three changes: a good one, and two that it refuses."""
    for name, text in files.items():
        repo.write(name, text)
    changes = {"good": ("a.txt", "fine\n"), "worse": ("b.txt", "bad\n"), "Big": ("c.txt", "x\n")}
    repo.git("add", "-A")
    repo.git("commit", "-qm", "start")
    for message, (name, text) in changes.items():
        repo.write(name, text)
        repo.git("add", "-A")
        repo.git("commit", "-qm", message)


def lines(output: bytes) -> list[str]:
    """Return the lines, those about commits without the id."""
    texts = output.decode().splitlines()
    return [text.partition(" ")[2] if len(text.split(" ")[0]) == 10 else text for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(("manager", "files"), MANAGERS.items(), ids=MANAGERS)
def test_the_same_commits_are_refused(repo: Repo, manager: str, files: dict[str, str]) -> None:
    history(repo, files)
    state = repo.git("status", "--porcelain", "--ignored"), repo.git("show-ref")
    done = repo.gitgates("convert", "--prove", env=PATH)
    assert lines(done.stdout)[:4] == [
        "good: accepted by both",
        "worse: refused by both",
        "Big: refused by both",
        "accepted by both: 1, refused by both: 2, different: 0",
    ], done
    assert done.returncode == 0, (manager, done)
    assert (repo.git("status", "--porcelain", "--ignored"), repo.git("show-ref")) == state


@pytest.mark.slow
def test_a_difference_is_shown_with_what_both_said(repo: Repo) -> None:
    history(repo, MANAGERS["lefthook"])
    repo.write("gitgates.toml", '[gates.bad]\ncommand = "! grep -n fine"\npass_files = true\n')
    done = repo.gitgates("convert", "--prove", env=PATH)
    assert done.returncode == 1
    said = done.stdout.decode()
    assert "good: DIFFERENT: lefthook accepts it, gitgates refuses it\n" in said
    assert "    gitgates: gitgates pre-commit: blocked: gate `bad` failed" in said
    assert "worse: DIFFERENT: lefthook refuses it, gitgates accepts it\n" in said
    assert "accepted by both: 0, refused by both: 1, different: 2\n" in said


@pytest.mark.slow
def test_what_fixers_stage_is_compared(repo: Repo) -> None:
    repo.write("lefthook.yml", LEFTHOOK)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "start")
    repo.write("a.md", "teh\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "mend it")
    done = repo.gitgates("convert", "--prove", env=PATH)
    assert lines(done.stdout)[0] == "mend it: accepted by both", done
    repo.write("gitgates.toml", '[gates.mend]\ncommand = "true"\nfiles = ["*.md"]\n')
    done = repo.gitgates("convert", "--prove", env=PATH)
    different = "mend it: DIFFERENT: lefthook accepts it, gitgates too, with other content"
    assert lines(done.stdout)[0] == different
    assert done.returncode == 1


@pytest.mark.slow
def test_nothing_compared_is_no_pass(repo: Repo) -> None:
    history(repo, {"lefthook.yml": "pre-commit: {jobs: [{name: a, run: x, glob: '*.rs'}]}\n"})
    done = repo.gitgates("convert", "--prove", "--commits", "2", env=PATH)
    assert done.stderr.endswith(b"nothing was compared: no gate has run\n")
    assert b"gates that have not run: a\n" in done.stdout
    assert done.returncode == 1


def test_a_missing_manager_is_said(repo: Repo, tmp_path: Path) -> None:
    history(repo, {"lefthook.yml": LEFTHOOK})
    (tmp_path / "bin").mkdir()
    for program in ("git", "sh"):
        os.symlink(f"/usr/bin/{program}", tmp_path / "bin" / program)
    done = repo.gitgates("convert", "--prove", env={"PATH": str(tmp_path / "bin")})
    assert b"lefthook is not found, so there is nothing to compare with" in done.stderr
    assert done.returncode == 64


def test_there_is_no_manager_behind_gates_json(repo: Repo) -> None:
    repo.write("gates.json", '{"gates": {"a": {"command": "x"}}}')
    repo.git("add", "-A")
    repo.git("commit", "-qm", "start")
    done = repo.gitgates("convert", "--prove", "gates.json")
    assert b"there is no manager to compare with" in done.stderr
    assert done.returncode == 64
