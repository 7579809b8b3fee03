"""Files of the commit that change while gates run: what is checked is what is committed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Repo, timeless
from process_support import wait_for

SEE = "gitgates: to see more: gitgates runs show latest"
SAYS = "gates that fix files need `writes = true`"
EACH = [(), ("-a",), ("--", "a.txt")]


def arm(repo: Repo, command: str, keys: str = "", hook: str = "") -> None:
    """Commit a gate for pre-commit, a.txt and b.txt; then stage `bad` in a.txt."""
    repo.config(
        f"[gates.g]\ncommand = '''{command}'''\n{keys}\n[hooks.pre-commit]\ngates = ['g']\n{hook}\n"
    )
    repo.write("a.txt", "fine\n")
    repo.write("b.txt", "fine\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a.txt", "bad\n")
    repo.git("add", "a.txt")


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", EACH, ids=["plain", "all", "paths"])
@pytest.mark.parametrize("keys", ["", "files = ['*.txt']", "pass_files = true"])
def test_a_fixer_that_does_not_say_so_fails_the_commit(
    repo: Repo, keys: str, args: tuple[str, ...]
) -> None:
    arm(repo, "sed -i s/bad/good/ a.txt", keys)
    done = repo.commit("x", *args)
    assert done.returncode == 1
    assert timeless(done.stderr) == (
        f"g  failed         0.00 s  it changed 1 file: a.txt; {SAYS}\n"
        "gitgates: review the changes (git diff), stage them (git add) and commit again\n"
        "gitgates pre-commit: blocked by `g`\n"
        f"{SEE}; to skip this once: GITGATES_SKIP=g git commit\n"
    )
    assert (repo.path / "a.txt").read_text() == "good\n"
    repo.git("add", "a.txt")
    assert repo.commit("x", *args).returncode == 0
    assert repo.git("show", "HEAD:a.txt") == "good"


@pytest.mark.samples(1)
@pytest.mark.parametrize("unstaged", ["hide", "checkout", "keep"])
def test_in_each_view_of_the_files(repo: Repo, unstaged: str) -> None:
    arm(repo, "sed -i s/bad/good/ a.txt", hook=f"unstaged = '{unstaged}'")
    repo.write("b.txt", "not staged\n")
    done = repo.commit()
    assert done.returncode == 1
    assert f"it changed 1 file: a.txt; {SAYS}\n" in done.stderr.decode()
    assert (repo.path / "b.txt").read_text() == "not staged\n"


def test_a_partly_staged_file_gets_the_fix_merged(repo: Repo) -> None:
    lines = "".join(f"line {n}\n" for n in range(9))
    arm(repo, "sed -i s/bad/good/ a.txt")
    repo.write("a.txt", "bad\n" + lines)
    repo.git("add", "a.txt")
    repo.write("a.txt", "bad\n" + lines + "mine\n")
    done = repo.commit()
    assert done.returncode == 1
    assert b"`a.txt`: changed while `g` ran; the change is merged into your version" in done.stderr
    assert (repo.path / "a.txt").read_text() == "good\n" + lines + "mine\n"


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    "command",
    [
        (
            "cp a.txt new && mv new a.txt; chmod 600 a.txt; touch a.txt; "
            "echo other > b.txt; echo made > made.txt; rm gone.txt"
        ),
        "touch a.txt",
        "cp a.txt new && mv new a.txt",
        "chmod +x a.txt; chmod -x a.txt",
        "chmod 600 a.txt",
        "echo other > b.txt; echo made > made.txt; rm gone.txt",
    ],
)
@pytest.mark.parametrize("unstaged", ["hide", "keep"])
def test_what_leaves_the_commit_as_it_is_passes(repo: Repo, command: str, unstaged: str) -> None:
    repo.write("gone.txt")
    arm(repo, command, hook=f"unstaged = '{unstaged}'")
    repo.git("rm", "-q", "--cached", "gone.txt")
    done = repo.commit()
    assert done.returncode == 0, done.stderr
    assert b"g  passed" in done.stderr


CHANGES = {"a.txt": "rm a.txt", "run": "chmod +x run", "link": "ln -sf b.txt link"}


@pytest.mark.samples(1)
@pytest.mark.parametrize("names", [[*CHANGES], *([name] for name in CHANGES)], ids=", ".join)
def test_deletions_modes_and_links_are_changes(repo: Repo, names: list[str]) -> None:
    arm(repo, "; ".join(CHANGES[name] for name in names))
    os.symlink("a.txt", repo.path / "link")
    repo.write("run")
    repo.git("add", "link", "run")
    done = repo.commit()
    assert done.returncode == 1
    assert f"it changed {len(names)} file" in done.stderr.decode()
    assert f": {', '.join(sorted(names))};" in done.stderr.decode()


def test_a_gate_that_fails_by_itself_tells_what_it_changed(repo: Repo) -> None:
    arm(repo, "sed -i s/bad/good/ a.txt; exit 3")
    done = repo.commit()
    assert done.returncode == 1
    assert "failed         0.00 s  exit status 3; it changed 1 file: a.txt" in timeless(done.stderr)


@pytest.mark.samples(1)
@pytest.mark.parametrize("keys", ["on_fail = 'CONTINUE'", "observe = true", "on_fail = 'h'"])
@pytest.mark.parametrize("end", ["", "; exit 3"])
def test_a_change_blocks_where_the_gate_may_not(repo: Repo, keys: str, end: str) -> None:
    arm(repo, "true")
    listed = "'g'" if "'h'" in keys else "'g', 'h'"
    repo.config(
        f"[gates.g]\ncommand = 'sed -i s/bad/good/ a.txt{end}'\n{keys}\n"
        f"[gates.h]\ncommand = 'grep -q good a.txt'\n[hooks.pre-commit]\ngates = [{listed}]\n"
    )
    repo.git("commit", "-qm", "both", "--no-verify", "--", "pyproject.toml")
    done = repo.commit()
    assert done.returncode == 1
    assert b"h  passed" in done.stderr
    assert b"blocked: a.txt changed while it was checked; commit again\n" in done.stderr
    assert done.stderr.decode().endswith(f"{SEE}\n")  # and not how to skip what need not be


def test_of_gates_side_by_side_all_are_named(repo: Repo) -> None:
    arm(repo, "true")
    repo.config(
        "[gates.g]\ncommand = 'until test -e .git/h; do :; done; rm a.txt; touch .git/g'\n"
        "[gates.h]\ncommand = 'touch .git/h; until test -e .git/g; do :; done'\n"
        "[hooks.pre-commit]\ngates = ['g', 'h']\nstrategy = 'collect'\n"
    )
    repo.git("commit", "-qm", "both", "--no-verify", "--", "pyproject.toml")
    done = repo.commit()
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "it or `h`, which ran in parallel, changed 1 file: a.txt;" in said
    assert "it or `g`, which ran in parallel, changed 1 file: a.txt;" in said


def test_a_gate_that_only_touches_what_another_has_changed_passes(repo: Repo) -> None:
    arm(repo, "true")
    repo.config(
        "jobs = 1\n[gates.g]\ncommand = 'echo good >a.txt'\n[gates.h]\ncommand = 'touch a.txt'\n"
        "[hooks.pre-commit]\ngates = ['g', 'h']\nstrategy = 'collect'\n"
    )
    repo.git("commit", "-qm", "both", "--no-verify", "--", "pyproject.toml")
    done = repo.commit()
    assert done.returncode == 1
    assert b"g  failed" in done.stderr
    assert b"h  passed" in done.stderr


def test_a_name_of_two_lines_is_said_on_one(repo: Repo) -> None:
    arm(repo, "rm -f c*")
    repo.write("c\ngitgates: all is well", "1\n")
    repo.git("add", "-A")
    done = repo.commit()
    assert done.returncode == 1
    assert b"it changed 1 file: c\\ngitgates: all is well; gates" in done.stderr
    assert b"\ngitgates: all" not in done.stderr


def interfering(tmp_path: Path, when: str, file: Path) -> dict[str, str]:
    """Return an environment whose `git WHEN` writes `good` to a file when it ends, once."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        f'#!/bin/sh\n{shutil.which("git")} "$@"; status=$?\n'
        f'case "$*" in *" {when} "*) test -e {tmp_path}/done || echo good > {file}; '
        f"touch {tmp_path}/done;; esac\nexit $status\n"
    )
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_what_somebody_writes_before_gates_read_it(repo: Repo, tmp_path: Path) -> None:
    arm(repo, "grep -q good a.txt")
    env = interfering(tmp_path, "status", repo.path / "a.txt")
    done = repo.ask(str(repo.path / ".git/hooks/pre-commit"), env=env)
    assert done.returncode == 1
    assert timeless(done.stderr) == (
        "g  not run        0.00 s  a.txt changed while it was checked; commit again\n"
        "gitgates pre-commit: blocked: a.txt changed while it was checked; commit again\n"
        f"{SEE}\n"
    )


@pytest.mark.samples(1)
@pytest.mark.parametrize("keys", ["", "on_fail = 'CONTINUE'"])
def test_what_somebody_writes_where_work_is_hidden(repo: Repo, tmp_path: Path, keys: str) -> None:
    arm(repo, "grep -q good a.txt", keys)
    repo.write("a.txt", "bad\nmine\n")
    pause = tmp_path / "pause"
    pause.mkdir()
    with subprocess.Popen(
        ["git", "commit", "-qm", "x"],
        cwd=repo.path,
        env={**os.environ, "GITGATES_PAUSE_AT": f"hidden 1 {pause}"},
        stderr=subprocess.PIPE,
    ) as commit:
        wait_for(pause / "reached", commit)
        repo.write("a.txt", "good\n")
        (pause / "go").touch()
        _out, said = commit.communicate()
    assert commit.returncode == 1
    assert b"blocked: a.txt changed while it was checked; commit again" in said


def test_what_somebody_writes_while_a_gate_runs(repo: Repo, out: Path) -> None:
    arm(repo, 'touch "$OUT/runs"; until grep -q good a.txt; do :; done')
    with subprocess.Popen(
        ["git", "commit", "-qm", "x"], cwd=repo.path, stderr=subprocess.PIPE
    ) as commit:
        wait_for(out / "runs", commit)
        repo.write("b.txt", "of another\n")
        repo.write("a.txt", "good\n")
        _out, said = commit.communicate()
    assert commit.returncode == 1
    assert b"review the changes (git diff), stage them (git add) and commit again" in said
    assert b"b.txt" not in said


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", ["in a checkout", "in place"])
def test_a_push(repo: Repo, where: str) -> None:
    arm(repo, "true")
    repo.add_origin()
    repo.config(
        "[gates.g]\ncommand = 'sed -i s/bad/good/ a.txt'\n[hooks.pre-push]\ngates = ['g']\n"
    )
    repo.git("commit", "-qam", "bad", "--no-verify")
    repo.shim("pre-push")
    if where == "in a checkout":
        repo.write("untracked")
    done = repo.ask("git", "push", "origin", "main")
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "blocked by `g`" in said
    assert "another process" not in said


def test_what_somebody_writes_before_a_push_reads_it(repo: Repo, tmp_path: Path) -> None:
    arm(repo, "true")
    repo.add_origin()
    repo.config("[gates.g]\ncommand = 'grep -q good a.txt'\n[hooks.pre-push]\ngates = ['g']\n")
    repo.git("commit", "-qam", "bad", "--no-verify")
    repo.shim("pre-push")
    line = f"refs/heads/main {repo.head()} refs/heads/main {'0' * 40}\n"
    env = interfering(tmp_path, "status", repo.path / "a.txt")
    hook = str(repo.path / ".git/hooks/pre-push")
    done = repo.ask(hook, "origin", "../origin.git", env=env, stdin=line.encode())
    assert done.returncode == 1
    assert b"blocked: a.txt changed while it was checked; push again" in done.stderr


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("command", "status"), [("true", 0), ("touch a.txt", 0), ("echo >> a.txt; rm b.txt", 1)]
)
def test_files_that_git_would_add_in_another_form(repo: Repo, command: str, status: int) -> None:
    arm(repo, "true")
    repo.add_origin()
    repo.config(f"[gates.g]\ncommand = '{command}'\n[hooks.pre-push]\ngates = ['g']\n")
    for name in ("a.txt", "b.txt"):
        (repo.path / name).write_bytes(b"one\r\ntwo\r\n")
    repo.commit_all("bytes")
    repo.write(".gitattributes", "*.txt text eol=lf\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "-qm", "attributes", "--no-verify")
    repo.shim("pre-push")
    repo.write("untracked")  # so that it is checked in a private checkout
    done = repo.ask("git", "push", "origin", "main")
    assert done.returncode == status, done.stderr
    if status:
        assert b"it changed 2 files: a.txt, b.txt" in done.stderr


def test_a_fixer_that_says_so_fails_a_push_too(repo: Repo) -> None:
    arm(repo, "true")
    repo.add_origin()
    gate = "[gates.g]\ncommand = 'sed -i s/bad/good/ a.txt'\nwrites = true\n"
    repo.config(gate + "[hooks.pre-push]\ngates = ['g']\n")
    repo.git("commit", "-qam", "bad", "--no-verify")
    repo.shim("pre-push")
    done = repo.ask("git", "push", "origin", "main")
    assert done.returncode == 1
    assert b"blocked: gate `g` changed 1 file: a.txt" in done.stderr


@pytest.mark.samples(2)
@pytest.mark.parametrize("content", ["staged", "unstaged", "untracked"])
def test_by_hand(repo: Repo, content: str) -> None:
    arm(repo, "sed -i s/bad/good/ *.txt", hook="[hooks.manual]\ngates = ['g']\n")
    name = {"staged": "a.txt", "unstaged": "b.txt", "untracked": "new.txt"}[content]
    repo.write(name, "bad\n")
    done = repo.gitgates("run", "--files", name, "--format", "json")
    assert done.returncode == 1
    gate = json.loads(done.stdout)["results"][0]
    assert (gate["status"], "exit_code" in gate) == ("failed", False)
    assert gate["changed_paths"] == [name]
    # `sed -i` writes each file anew: of the same bytes, that is no change.
    assert repo.gitgates("run", "--files", name).returncode == 0
    assert repo.gitgates("run", "--all-files").returncode == 0


def test_by_hand_gates_may_write_what_git_does_not_know(repo: Repo) -> None:
    arm(repo, "wc -l <runs >>runs", hook="[hooks.manual]\ngates = ['g']\n")
    repo.write("runs", "")
    assert repo.gitgates("run").returncode == 0
    repo.git("add", "-N", "runs")
    assert repo.gitgates("run").returncode == 1


def test_a_message_may_be_changed(repo: Repo) -> None:
    arm(repo, "true")
    repo.config(
        "[gates.id]\ncommand = 'echo Change-Id: 1 >> \"$1\"'\npass_files = true\n"
        "[hooks.commit-msg]\ngates = ['id']\n"
    )
    repo.git("add", ".")
    repo.shim("commit-msg")
    done = repo.commit("subject")
    assert done.returncode == 0, done.stderr
    assert repo.git("log", "-1", "--format=%B") == "subject\nChange-Id: 1"


def test_a_gate_that_had_ended_before_is_not_named(repo: Repo) -> None:
    arm(repo, "true")
    repo.config(
        "jobs = 2\n"
        # `k` starts when `h` has ended.
        "[gates.g]\ncommand = 'until test -e .git/k; do :; done; rm a.txt'\n"
        "[gates.h]\ncommand = 'true'\n"
        "[gates.k]\ncommand = 'touch .git/k; while test -e a.txt; do :; done; sleep 0.2'\n"
        "[hooks.pre-commit]\ngates = ['g', 'h', 'k']\nstrategy = 'collect'\n"
    )
    repo.git("commit", "-qm", "both", "--no-verify", "--", "pyproject.toml")
    said = repo.commit().stderr.decode()
    assert "it or `k`, which ran in parallel, changed 1 file: a.txt;" in said
