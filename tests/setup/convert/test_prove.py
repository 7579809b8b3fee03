"""`gitgates convert --prove`: real managers and gitgates make the same commits, in copies."""

from __future__ import annotations

import json
import os
import sys

import pytest
from click.testing import CliRunner
from conftest import Repo

from gitgates.cli import convert as verb
from gitgates.setup.convert import prove
from gitgates.setup.convert.conversion import convert
from gitgates.setup.convert.prove import CommitResult, Prover, Replay

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
    changes = {
        "good": ("a.md", "teh\n"),  # lefthook mends that
        "worse": ("b.txt", "bad\n"),
        "Big": ("c.txt", "x\n"),
    }
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
@pytest.mark.samples(1)
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


def test_each_manager_is_started_as_its_own_hooks_start_it(repo: Repo) -> None:
    """What the test before this does with all of them in `make thorough`."""
    started = {
        "pre-commit": ("hook-impl --hook-type={0} --hook-dir=", '"$(dirname "$0")" -- "$@"'),
        "lefthook": ("lefthook run {0} --no-auto-install", '"$@"'),
        "husky": ("sh -e .husky/{0}", '"$@"'),
        "simple-git-hooks": ("", ""),
    }
    for manager, files in MANAGERS.items():
        folder = repo.path.parent / manager
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        hooks = prove.old_hooks(convert(str(folder)))
        assert {"pre-commit", "commit-msg"} <= {*hooks}, manager
        for hook, script in hooks.items():
            for part in started[manager]:
                assert part.format(hook) in script, manager
    assert "(\ngrep -q '^[a-z]' $1\n) || exit\n" in hooks["commit-msg"]


ACCEPTED, REFUSED = CommitResult(accepted=True, tree="t"), CommitResult(accepted=False)
BY_GATE = REFUSED._replace(output="bad  failed  0.01 s\nblocked by `bad`")
REPLAYED = {
    "good": (ACCEPTED, ACCEPTED._replace(output="bad  passed  0.01 s"), "accepted by both"),
    "worse": (REFUSED, BY_GATE, "refused by both"),
    "stricter": (
        ACCEPTED,
        BY_GATE,
        (
            "DIFFERENT: lefthook accepts it, gitgates refuses it\n"
            "    gitgates: bad  failed  0.01 s\n    gitgates: blocked by `bad`"
        ),
    ),
    "laxer": (
        REFUSED._replace(output="old"),
        ACCEPTED,
        "DIFFERENT: lefthook refuses it, gitgates accepts it\n    lefthook: old",
    ),
    "mended": (
        ACCEPTED,
        ACCEPTED._replace(tree="u"),
        "DIFFERENT: lefthook accepts it, gitgates too, with other content",
    ),
}


@pytest.mark.parametrize(
    ("subjects", "numbers", "ran"),
    [
        (["good", "worse"], (1, 1, 0), "bad (2)\ngates that have not run: mend"),
        ([*REPLAYED], (1, 1, 3), "bad (3)\ngates that have not run: mend"),
        (["mended"], (0, 0, 1), "none\ngates that have not run: bad, mend"),
        ([], (0, 0, 0), "none\ngates that have not run: bad, mend"),
    ],
)
def test_what_both_did_is_compared(
    repo: Repo,
    monkeypatch: pytest.MonkeyPatch,
    subjects: list[str],
    numbers: tuple[int, ...],
    ran: str,
) -> None:
    repo.write("lefthook.yml", LEFTHOOK.partition("commit-msg")[0])
    replays = [Replay("c" * 40, subject, *REPLAYED[subject][:2]) for subject in subjects]
    monkeypatch.setattr(Prover, "__init__", lambda *_args: None)
    monkeypatch.setattr(Prover, "replay", lambda *_args: replays)
    monkeypatch.setattr(verb, "last_commits", lambda *_args: [])
    monkeypatch.chdir(repo.path)
    done = CliRunner().invoke(verb.command, ["--prove"], standalone_mode=False)
    assert done.stdout == (
        "".join(f"cccccccccc {subject}: {REPLAYED[subject][2]}\n" for subject in subjects)
        + "accepted by both: {}, refused by both: {}, different: {}\n".format(*numbers)
        + f"gates that have run: {ran}\n"
    )
    is_nothing = ran.startswith("none")
    assert done.stderr.endswith("nothing was compared: no gate has run\n") is is_nothing
    assert done.return_value == int(is_nothing or numbers[2] > 0)


@pytest.mark.thorough
@pytest.mark.slow
def test_what_fixers_stage_is_compared(repo: Repo) -> None:
    repo.write("lefthook.yml", LEFTHOOK)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "start")
    repo.write("a.md", "teh\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "mend it")
    repo.write("gitgates.toml", '[gates.mend]\ncommand = "true"\nfiles = ["*.md"]\n')
    done = repo.gitgates("convert", "--prove", env=PATH)
    different = "mend it: DIFFERENT: lefthook accepts it, gitgates too, with other content"
    assert lines(done.stdout)[0] == different
    assert done.returncode == 1


def test_a_missing_manager_is_said(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    history(repo, {"lefthook.yml": LEFTHOOK})
    monkeypatch.setattr("shutil.which", lambda *_args, **_options: None)
    done = repo.gitgates("convert", "--prove")
    assert b"lefthook is not found, so there is nothing to compare with" in done.stderr
    assert done.returncode == 64
