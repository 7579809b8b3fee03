"""What a hook manager runs and what a gate of ours runs is one thing, and runs once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from install_support import Repo, make_repo

pytestmark = pytest.mark.slow  # each makes commits, and some start pre-commit

CONFIG = """\
repos:
- repo: local
  hooks:
  - id: count
    name: count
    language: system
    entry: sh -c 'echo ran >>"$LOG"; test ! -e bad'
    pass_filenames: false
    always_run: true
"""


@pytest.fixture(params=["pre-commit", "prek"])
def manager(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.env["LOG"] = str(tmp_path / "log")
    repo.write(".pre-commit-config.yaml", CONFIG)
    assert repo.gitgates("init")[0] == 0
    repo.git("add", "-A")
    return repo


def runs(repo: Repo, status: int = 0, *, changes: bool = True) -> int:
    """Commit; return how often the hook of the framework has run."""
    log = Path(repo.env["LOG"])
    log.write_text("")
    if changes:
        repo.write("file", os.urandom(8))
        repo.git("add", "file")
    done = repo.run("git", "commit", "-q", "--allow-empty", "-am", "change")
    assert done.returncode == status, done.stdout + done.stderr
    return log.read_text().count("ran")


def install(repo: Repo, program: str, *argv: str) -> str:
    if program == "gitgates":
        status, out, err = repo.gitgates(*argv)
    else:
        done = repo.run(program, *argv)
        status, out, err = done.returncode, done.stdout, done.stderr
    assert status == 0, err
    return out + err


def doctor(repo: Repo) -> list[str]:
    """Return what the doctor says of double runs."""
    found = json.loads(repo.gitgates("doctor", "--format", "json")[1])["findings"]
    return [one["what"] for one in found if one["check"] == "twice"]


SAME = "is kept, but not run: gate `pre-commit` runs the same hooks"


def test_over_the_frameworks_own_hook_the_gate_runs_and_that_hook_does_not(repo: Repo) -> None:
    install(repo, "pre-commit", "install")
    said = install(repo, "gitgates", "install-hooks")
    assert f"the existing hook {SAME}: pre-commit.before-gitgates\n" in said
    assert "is used here (.git/hooks/pre-commit); gate `pre-commit` runs its hooks\n" in said
    assert doctor(repo) == [f"the hook from before {SAME}"]
    assert f"note: the hook from before {SAME}\n" in repo.gitgates("explain", "pre-commit")[1]
    assert runs(repo) == 1
    repo.write("bad", "")
    assert runs(repo, status=1) == 1


@pytest.mark.nightly
def test_whichever_is_installed_over_the_other(repo: Repo, manager: str) -> None:
    install(repo, manager, "install")
    install(repo, "gitgates", "install-hooks")
    assert runs(repo) == 1
    assert runs(repo, changes=False) == 1  # where the gate has no path, that hook runs all the same
    assert doctor(repo) == [f"the hook from before {SAME}"]
    repo.write("bad", "")
    assert runs(repo, status=1) == 1
    (repo.path / "bad").unlink()
    install(repo, manager, "install")  # over ours
    assert runs(repo) == 1
    repo.write("bad", "")
    assert runs(repo, status=1) == 1
    (repo.path / "bad").unlink()
    install(repo, "gitgates", "install-hooks")  # over that
    assert runs(repo) == 1
    assert doctor(repo) == [f"the hook from before {SAME}"]
    install(repo, "gitgates", "uninstall-hooks")
    assert runs(repo) == 1


@pytest.mark.samples(1)
def test_hooks_that_match_no_path_are_asked_once(repo: Repo, manager: str) -> None:
    repo.write(".pre-commit-config.yaml", CONFIG.replace("always_run: true", "files: no.such"))
    install(repo, manager, "install")
    install(repo, "gitgates", "install-hooks")
    repo.write("file", "new")
    repo.git("add", "-A")
    done = repo.run("git", "commit", "-qm", "change")
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("(no files to check)Skipped") == 1
    assert "its hooks match no path of this event" in done.stderr


@pytest.mark.thorough
def test_through_the_framework_the_gate_is_left_to_it(repo: Repo) -> None:
    install(repo, "pre-commit", "install")
    said = install(repo, "gitgates", "install-hooks", "--via", "pre-commit")
    skipped = "gate `pre-commit` is skipped: pre-commit runs its hooks itself"
    assert f"gitgates: {skipped}\n" in said
    repo.git("add", "-A")
    assert runs(repo) == 1
    assert set(doctor(repo)) == {skipped}
    assert f"note: {skipped}\n" in repo.gitgates("explain", "pre-commit")[1]
    verified = repo.gitgates("verify", "HEAD")[1]
    assert "skipped: pre-commit" in verified
    assert "bypassed" not in verified


GATE = '[gates.x]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["x"]\n'


def _without_gate(repo: Repo) -> None:
    repo.write("gitgates.toml", GATE)


def _with_files(repo: Repo) -> None:
    some = GATE.replace('command = "true"', 'pre-commit = true\nfiles = ["no.such"]')
    repo.write("gitgates.toml", some)


def _with_other_config(repo: Repo) -> None:
    hook = repo.hook("pre-commit.before-gitgates")
    text = hook.read_text()
    assert "--config=.pre-commit-config.yaml" in text
    hook.write_text(text.replace("--config=.pre-commit-config.yaml", "--config=other.yaml"))
    repo.write("other.yaml", CONFIG.replace("count", "other"))
    repo.git("add", "-A")


# As pre-commit 4.6 writes it, but that it is counted here.
WRITTEN = """\
#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
# ID: 138fd403232d2ddd5efb44317e38bf03
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)
echo ran >>"$LOG"
"""


@pytest.mark.samples(2, "nightly")
@pytest.mark.parametrize(
    "framework", ["as written", pytest.param("real", marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: r.gitgates("uninstall-hooks"), id="no gitgates"),
        pytest.param(_without_gate, id="no such gate"),
        pytest.param(_with_files, id="a gate of some files"),
        pytest.param(lambda r: r.write("gitgates.toml", "["), id="a broken configuration"),
        pytest.param(_with_other_config, id="another file of the framework"),
    ],
)
def test_the_frameworks_own_hook_runs_where_no_gate_does_the_same(
    repo: Repo, change: object, framework: str
) -> None:
    if framework == "real":
        install(repo, "pre-commit", "install")
    else:
        repo.keep("pre-commit", WRITTEN.encode())
    install(repo, "gitgates", "install-hooks")
    change(repo)  # type: ignore[operator]
    log = Path(repo.env["LOG"])
    log.write_text("")
    repo.run("git", "commit", "-q", "--allow-empty", "-m", "change")
    assert log.read_text().count("ran") >= 1


def test_the_doctor_names_gates_that_a_manager_runs_as_well(repo: Repo) -> None:
    (repo.path / ".pre-commit-config.yaml").unlink()
    repo.write("lefthook.yml", "pre-commit: {jobs: [{run: ./check}, {run: ./other}]}\n")
    repo.write(
        "gitgates.toml",
        '[gates.check]\ncommand = "./check"\n[gates.mine]\ncommand = "./mine"\n'
        '[hooks.pre-commit]\ngates = ["check", "mine"]\n',
    )
    repo.keep("pre-commit", b'#!/bin/sh\ncall_lefthook run "pre-commit" "$@"\n')
    install(repo, "gitgates", "install-hooks")
    assert doctor(repo) == ["lefthook runs the same commands before a gate does: `check`"]
    repo.write("gitgates.toml", GATE)
    assert doctor(repo) == []
