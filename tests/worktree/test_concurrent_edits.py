"""Whatever others write while work is hidden: every byte is on disk or in a place that is named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
from worktree_state import files

LINES = "".join(f"line {n}\n" for n in range(20))
MINE = LINES.replace("line 2\n", "mine\n")


needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self"), reason="finds processes through /proc"
)


@pytest.fixture
def armed(repo: Repo) -> Repo:
    """A repository with `a` changed and not staged, and `c` staged."""
    for name in ("a", "b", "c"):
        repo.write(name, LINES)
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.shim("pre-commit")
    repo.write("a", MINE)
    repo.write("c", "staged\n")
    repo.git("add", "c")
    return repo


def commit_while(repo: Repo, command: str) -> str:
    """Commit while a gate does something to the files; return what was said."""
    arm(repo, command)
    done = repo.commit()
    assert done.returncode == 0, done.stderr
    assert repo.git("stash", "list") == ""
    return done.stderr.decode()


def kept(repo: Repo, said: str, name: str = r"\S+") -> str:
    """Return the text that the output names, the same from the file and from the ref."""
    named = re.search(rf"`{name}`: .*the other version is in (\S+) and (\S+)", said)
    assert named, said
    text = Path(named[1]).read_text()
    assert repo.git("cat-file", "blob", named[2]) + "\n" == text
    return text


def test_whatever_others_do_to_what_is_hidden(repo: Repo, tmp_path: Path) -> None:
    """What the tests below have one by one, and some of `test_hide_hostile`, in `make thorough`."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("precious\n")
    mine = ["far", "near", "anew", "same", "gone", "folder", "deep/f"]
    mine += ["cut", "run", "stealth", "way/f", "link/f"]
    for name in (*mine, "binary", "removed", "other", "deleted", "c"):
        repo.write(name, LINES)
    repo.commit_all("base")
    repo.shim("pre-commit")
    for name in mine:
        repo.write(name, MINE)
    repo.write("binary", b"\0mine")
    (repo.path / "removed").unlink()
    repo.write("c", "staged\n")
    repo.git("add", "c")
    said = commit_while(
        repo,
        "sed -i s/line\\ 15/theirs/ far; sed -i s/line\\ 2$/theirs/ near; rm -r gone folder deep; "
        "sed s/line\\ 15/theirs/ anew > t && mv t anew; cp same t && mv t same; "
        "mkdir folder; echo inside > folder/x; printf '\\0theirs\\n' > binary; "
        "for name in removed other new; do echo theirs > $name; done; rm deleted; "
        "head -c 40 cut > t; cat t > cut; chmod +x run; "
        "touch -r stealth ref; tr l L < stealth > t; cat t > stealth; touch -r ref stealth; "
        f"rm -r way link; echo blocker > way; ln -s {tmp_path}/outside link",
    )
    for name in ("far", "anew"):
        assert (repo.path / name).read_text() == MINE.replace("line 15", "theirs")
        assert f"`{name}`: changed meanwhile; the change is merged into your version" in said
    assert "your previous version is in" in said
    for name in ("near", "same", "gone", "folder", "deep/f", "cut", "run", "way/f", "link/f"):
        assert (repo.path / name).read_text() == MINE
    assert kept(repo, said, "near") == LINES.replace("line 2\n", "theirs\n")
    conflict = "changed meanwhile, in conflict with your changes; your version is in place"
    assert f"`near`: {conflict}" in said
    assert (repo.path / "binary").read_bytes() == b"\0mine"
    assert kept(repo, said, "binary") == "\0theirs\n"
    assert "`same`" not in said
    assert "`gone`: was deleted meanwhile; your version is restored" in said
    named = re.search(r"`folder`: .*the other version is in (\S+)", said)
    assert named
    assert (Path(named[1]) / "x").read_text() == "inside\n"
    assert kept(repo, said, "removed") == "theirs\n"
    assert os.access(repo.path / "run", os.X_OK)
    assert "`run`: its execute bit was changed in the meantime" in said
    assert re.search("`way`: `way/f` needs a folder there; the other version is in", said)
    assert (tmp_path / "outside/f").read_text() == "precious\n"
    assert not (repo.path / "link").is_symlink()
    beside = [path for path in (repo.path / ".git/gitgates/kept").rglob("*") if path.is_file()]
    texts = {path.read_text() for path in beside}
    assert {MINE, "blocker\n", LINES.replace("l", "L")} <= texts
    assert [(repo.path / name).exists() for name in ("removed", "deleted")] == [False, False]
    assert [(repo.path / name).read_text() for name in ("other", "new")] == ["theirs\n"] * 2
    assert repo.gitgates("recover", "--show", "near").stdout.decode() == kept(repo, said, "near")
    listed = repo.gitgates("recover", "--list").stdout.decode()
    assert re.search(r"^near +kept +\S*Z-\d+ ", listed, re.MULTILINE)


@pytest.mark.thorough
def test_a_change_elsewhere_in_the_file_is_merged(armed: Repo) -> None:
    said = commit_while(armed, "sed -i s/line\\ 15/theirs/ a")
    assert (armed.path / "a").read_text() == MINE.replace("line 15", "theirs")
    assert "`a`: changed meanwhile; the change is merged into your version" in said


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("writes", "staged"), [("true", LINES), ("true", "new\n" + LINES), ("false", "new\n" + LINES)]
)
def test_a_fixer_that_cuts_off_the_end_of_a_partly_staged_file(
    repo: Repo, writes: str, staged: str
) -> None:
    repo.config(
        f"[gates.fix]\ncommand = 'truncate -s -1 a'\nwrites = {writes}\n"
        "[hooks.pre-commit]\ngates = ['fix']\n"
    )
    repo.write("a", LINES)
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", staged + "\n")
    repo.git("add", "a")
    mine = staged.replace("line 2\n", "mine\n")
    repo.write("a", mine + "\n")
    done = repo.commit()
    assert done.returncode == 1
    how = "by gate `fix`" if writes == "true" else "while `fix` ran"
    assert f"`a`: changed {how}; the change is merged into your version" in done.stderr.decode()
    assert (repo.path / "a").read_text() == mine


@pytest.mark.thorough
def test_a_change_of_the_same_line_is_kept_beside(armed: Repo) -> None:
    said = commit_while(armed, "sed -i s/line\\ 2$/theirs/ a")
    assert (armed.path / "a").read_text() == MINE
    assert kept(armed, said) == LINES.replace("line 2\n", "theirs\n")
    assert "`a`: changed meanwhile, in conflict with your changes; your version is in place" in said


def test_what_a_fixer_changed_where_the_person_did_is_said_to_be_its(armed: Repo) -> None:
    fix = "[gates.fix]\ncommand = 'sed -i \"s/line 2$/fixed/\" a'\nwrites = true\n"
    arm(armed)
    armed.write("gitgates.local.toml", fix + "[hooks.pre-commit]\ngates = ['fix']\n")
    done = armed.commit()
    assert done.returncode == 1
    assert (
        b"`a`: changed by gate `fix`, in conflict with your changes; your version is in place"
        in done.stderr
    )
    assert (armed.path / "a").read_text() == MINE


@pytest.mark.thorough
def test_binary_changes_are_kept_beside(armed: Repo) -> None:
    armed.write("a", b"\0mine")
    said = commit_while(armed, "printf '\\0theirs\\n' > a")
    assert (armed.path / "a").read_bytes() == b"\0mine"
    assert kept(armed, said) == "\0theirs\n"


@pytest.mark.thorough
def test_a_file_written_anew_under_its_name_is_looked_at(armed: Repo) -> None:
    said = commit_while(armed, "sed s/line\\ 15/theirs/ a > t && mv t a")
    assert (armed.path / "a").read_text() == MINE.replace("line 15", "theirs")
    assert "merged" in said


@pytest.mark.thorough
def test_a_rewrite_with_the_same_bytes_is_no_change(armed: Repo) -> None:
    said = commit_while(armed, "cp a t && mv t a")
    assert (armed.path / "a").read_text() == MINE
    assert "`a`" not in said


@pytest.mark.thorough
def test_other_files_are_never_touched(armed: Repo) -> None:
    armed.write("e", "committed\n")
    armed.git("add", "e")
    armed.git("commit", "-qm", "e", "--no-verify", "--", "e")
    commit_while(armed, "echo theirs > b; echo new > new; mkdir d; echo deep > d/e; rm e")
    assert (armed.path / "b").read_text() == "theirs\n"
    assert (armed.path / "new").read_text() == "new\n"
    assert (armed.path / "d/e").read_text() == "deep\n"
    assert not (armed.path / "e").exists()
    assert (armed.path / "a").read_text() == MINE


@pytest.mark.thorough
def test_a_deleted_file_comes_back_with_our_text(armed: Repo) -> None:
    said = commit_while(armed, "rm a")
    assert "`a`: was deleted meanwhile; your version is restored" in said
    assert (armed.path / "a").read_text() == MINE


@pytest.mark.thorough
def test_a_folder_in_its_place_is_kept_beside(armed: Repo) -> None:
    said = commit_while(armed, "rm a; mkdir a; echo inside > a/x")
    assert (armed.path / "a").read_text() == MINE
    named = re.search(r"the other version is in (\S+)", said)
    assert named
    assert (Path(named[1]) / "x").read_text() == "inside\n"


@pytest.mark.thorough
def test_a_file_that_we_deleted_and_a_gate_changes(armed: Repo) -> None:
    (armed.path / "b").unlink()
    said = commit_while(armed, "echo theirs > b")
    assert not (armed.path / "b").exists()
    assert kept(armed, said) == "theirs\n"


@pytest.mark.thorough
def test_the_folder_of_a_hidden_file_is_made_again(repo: Repo) -> None:
    repo.write("d/a", LINES)
    repo.write("c", "x")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.shim("pre-commit")
    repo.write("d/a", MINE)
    repo.write("c", "y")
    repo.git("add", "c")
    commit_while(repo, "rm -r d")
    assert (repo.path / "d/a").read_text() == MINE


def paused(repo: Repo, step: str, folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start a commit and return when it waits at a step."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        ["git", "commit", "-qm", "paused", *args],
        cwd=repo.path,
        env={**os.environ, "GITGATES_PAUSE_AT": f"{step} {folder}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + 20
    while not (folder / "reached").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)
    return process


def arm(repo: Repo, command: str = "true") -> None:
    """Have a gate, by local settings: they are part of no commit."""
    repo.write(f"{repo.git('rev-parse', '--git-common-dir')}/info/exclude", "gitgates.local.toml\n")
    gate = f"[gates.g]\ncommand = '''{command}'''\n"
    repo.write("gitgates.local.toml", f"{gate}[hooks.pre-commit]\ngates = ['g']\n")


@pytest.mark.samples(1)
@pytest.mark.parametrize("step", ["put-back 1", "take-out 1", "forget 1", "hidden 1"])
def test_a_writer_at_every_step_loses_nothing(armed: Repo, tmp_path: Path, step: str) -> None:
    arm(armed)
    process = paused(armed, step, tmp_path / "p")
    armed.write("a", "written in between\n")
    armed.write("b", "other file\n")
    (tmp_path / "p/go").touch()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert (armed.path / "b").read_text() == "other file\n"
    texts = [(armed.path / "a").read_text()]
    texts += [path.read_text() for path in (armed.path / ".git/gitgates/kept").rglob("a*")]
    if step == "forget 1":
        assert texts == ["written in between\n"]  # everything was back before
    else:
        assert sorted(texts) == sorted([MINE, "written in between\n"])
        assert b"the other version is in" in said


def test_a_second_commit_waits_for_the_first(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    first = paused(armed, "hidden 1", tmp_path / "p")
    before = {**files(armed)}
    second = subprocess.Popen(
        [sys.executable, "-m", "gitgates", "run", "pre-commit"],
        cwd=armed.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert second.stdout
    # It says who it waits for, after a moment; nothing has moved meanwhile.
    line = second.stdout.readline().decode()
    assert re.fullmatch(r"gitgates: waiting for gitgates \(process \d+\) since .*\n", line)
    assert files(armed) == before
    (tmp_path / "p/go").touch()
    first.communicate(timeout=30)
    assert first.returncode == 0
    rest, _ = second.communicate(timeout=30)
    assert second.returncode == 0, rest
    assert (armed.path / "a").read_text() == MINE


def test_two_linked_worktrees_at_once(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    armed.git("worktree", "add", "-q", "../linked")
    linked = Repo(armed.path.parent / "linked")
    arm(linked)
    linked.write("a", "linked, unstaged\n")
    linked.write("c", "linked, staged\n")
    linked.git("add", "c")
    processes = [
        paused(place, "hidden 1", tmp_path / name)
        for place, name in ((armed, "one"), (linked, "two"))
    ]
    assert (armed.path / "a").read_text() == (linked.path / "a").read_text() == LINES
    for name in ("one", "two"):
        (tmp_path / name / "go").touch()
    for process in processes:
        process.communicate(timeout=30)
    assert [process.returncode for process in processes] == [0, 0]
    assert (armed.path / "a").read_text() == MINE
    assert (linked.path / "a").read_text() == "linked, unstaged\n"


def kill_everything(process: subprocess.Popen[bytes], repo: Repo) -> None:
    """Kill git, our hook and its guardian, as a loss of power does."""
    needle = str(repo.path / ".git").encode()
    victims = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if b"gitgates-guardian" in command and needle in command:
                victims.append(int(name))
    assert victims
    for pid in victims:
        os.kill(pid, 9)
    os.killpg(process.pid, 9)
    process.communicate()


STEPS = ("move-aside 1", "show 1", "hidden 1", "put-back 1", "forget 1")
OTHERS = ("run --gate g", "run", "commit")


@needs_proc
@pytest.mark.parametrize(
    ("step", "how"),
    [
        *((step, "recover") for step in STEPS),
        ("hidden 1", "commit"),
        *(
            pytest.param(step, how, marks=pytest.mark.thorough)
            for step in STEPS
            for how in OTHERS
            if (step, how) != ("hidden 1", "commit")
        ),
    ],
)
def test_after_a_loss_of_power_any_command_recovers(
    armed: Repo, tmp_path: Path, step: str, how: str
) -> None:
    arm(armed)
    before = files(armed)
    process = paused(armed, step, tmp_path / "p")
    kill_everything(process, armed)
    done = armed.commit("next") if how == "commit" else armed.gitgates(*how.split())
    assert done.returncode == 0, done.stderr
    assert files(armed) == before
    assert list((armed.path / ".git").glob("gitgates-index*")) == []
    if step in ("show 1", "hidden 1", "put-back 1"):
        said = (done.stdout + done.stderr).decode()
        assert "restored 1 file: a" in said


@pytest.mark.samples(2)
@needs_proc
@pytest.mark.parametrize(
    "verb",
    ["doctor", "check", "runs", "init --dry-run", "journal topics"],
)
def test_every_verb_recovers(armed: Repo, tmp_path: Path, verb: str) -> None:
    arm(armed)
    before = files(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    done = armed.gitgates(*verb.split())
    assert files(armed) == before
    assert b"restored 1 file: a" in done.stderr
    assert done.returncode == (verb == "doctor")  # no hook of ours is installed as it does that


@needs_proc
def test_an_agents_event_without_gates_recovers(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    armed.config("[gates.g]\ncommand = 'true'\n[hooks.Stop]\ngates = ['g']\n")
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(armed.path)}
    armed.gitgates("agent-hook", "claude", stdin=json.dumps(event).encode())
    assert (armed.path / "a").read_text() == MINE


def test_recover_lists_and_shows_without_touching(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    process = paused(armed, "hidden 1", tmp_path / "p")
    kill_everything(process, armed)
    before = files(armed)
    listed = armed.gitgates("recover", "--list")
    assert listed.returncode == 0
    assert "a  hidden" in listed.stdout.decode()
    shown = armed.gitgates("recover", "--show", "a")
    assert shown.stdout.decode() == MINE
    assert files(armed) == before
    applied = armed.gitgates("recover", "--apply")
    assert "restored 1 file: a" in applied.stdout.decode()
    assert (armed.path / "a").read_text() == MINE
    again = armed.gitgates("recover")
    assert again.stdout.decode() == "nothing to recover\n"


@pytest.mark.thorough
def test_a_text_that_was_kept_can_be_found_later(armed: Repo) -> None:
    commit_while(armed, "sed -i s/line\\ 2$/theirs/ a")
    listed = armed.gitgates("recover", "--list").stdout.decode()
    assert re.search(r"^a +kept +\S*Z-\d+ ", listed, re.MULTILINE)
    shown = armed.gitgates("recover", "--show", "a").stdout.decode()
    assert shown == LINES.replace("line 2\n", "theirs\n")


@pytest.mark.samples(1)
@needs_proc
@pytest.mark.parametrize("damage", [b"torn {", None])
def test_without_its_journal_what_is_saved_is_named(
    armed: Repo, tmp_path: Path, damage: bytes | None
) -> None:
    arm(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    journal, saved = (armed.path / ".git/gitgates/rescue" / name for name in ("journal", "saved/0"))
    if damage is None:
        journal.unlink()
    else:
        journal.write_bytes(damage)
    before = files(armed)
    for verb in ("run", "recover", "check"):
        done = armed.gitgates(verb)
        assert done.returncode == 73
        assert b"rescue/journal: cannot be read" in done.stderr
        assert b"They are in" in done.stderr
        assert str(saved).encode() in done.stderr
    assert armed.commit().returncode == 1
    assert saved.read_text() == MINE
    assert files(armed) == before


@needs_proc
def test_a_journal_with_another_path_moves_nothing(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    journal = armed.path / ".git/gitgates/rescue/journal"
    journal.write_bytes(journal.read_bytes().replace(b"'a'", b"'b'"))
    done = armed.gitgates("recover")
    assert (done.returncode, (armed.path / "b").read_text()) == (73, LINES)
    assert b"rescue/journal: cannot be read: it is damaged" in done.stderr


@pytest.mark.samples(1)
@needs_proc
@pytest.mark.parametrize("how", ["recover", "check", "commit"])
def test_a_damaged_file_is_not_put_back_but_kept_and_named(
    armed: Repo, tmp_path: Path, how: str
) -> None:
    armed.write("b", "mine, whole\n")
    arm(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    os.truncate(armed.path / ".git/gitgates/rescue/saved/0", 30)
    done = armed.commit() if how == "commit" else armed.gitgates(how)
    assert done.returncode == (1 if how == "commit" else 73)
    assert (armed.path / "a").read_text() == LINES
    assert (armed.path / "b").read_text() == "mine, whole\n"
    said = done.stderr.decode()
    named = re.search(
        r"`a`: yours is damaged \(30 bytes, .*\) and was not restored; .* in (\S+)", said
    )
    assert named, said
    assert Path(named[1]).read_text() == MINE[:30]
    assert "restored 1 file: b" in said
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"
    assert armed.gitgates("recover", "--show", "a").stdout.decode() == MINE[:30]


@needs_proc
def test_a_saved_file_that_is_gone_is_named(armed: Repo, tmp_path: Path) -> None:
    armed.write("b", "mine, whole\n")
    arm(armed)
    kill_everything(paused(armed, "hidden 1", tmp_path / "p"), armed)
    (armed.path / ".git/gitgates/rescue/saved/0").unlink()
    done = armed.gitgates("recover")
    assert done.returncode == 73
    assert (armed.path / "b").read_text() == "mine, whole\n"
    assert re.search(rb"`a`: yours is missing: \S+/saved/0 not found; the version", done.stderr)
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"


def test_a_gate_that_removes_a_saved_file_is_found_out(armed: Repo) -> None:
    arm(armed, "rm .git/gitgates/rescue/saved/0")
    done = armed.commit()
    assert done.returncode == 1
    assert b"`a`: yours is missing: " in done.stderr


def test_a_gate_that_removes_the_journal_takes_nothing(armed: Repo) -> None:
    arm(armed, "rm .git/gitgates/rescue/journal")
    assert armed.commit().returncode == 0
    assert (armed.path / "a").read_text() == MINE
