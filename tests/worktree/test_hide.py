"""Gates see what is being committed; afterwards every byte, mode and time is as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Repo, timeless
from worktree_state import files, whole

# What the gate sees: each path below the root with its content, links as `name -> target`.
LOOK = (
    "find . -path ./.git -prune -o -type l -printf '%P -> %l\\n' "
    '-o -type f -printf "%P: " -exec cat {} \\; -exec echo \\; | sort > "$OUT/seen"'
)
CONFIG = f"[gates.look]\ncommand = '''{LOOK}'''\n[hooks.pre-commit]\ngates = ['look']\n"


@pytest.fixture
def armed(repo: Repo, out: Path) -> Repo:
    """A repository with some committed files, whose gate writes down what it sees."""
    assert out.exists()
    repo.config(CONFIG)
    for name in ("a", "b", "c", "dir/d", "dir/e"):
        repo.write(name, f"{name} committed")
    repo.commit_all("base")
    repo.shim("pre-commit")
    return repo


def seen(out: Path) -> dict[str, str]:
    lines = (out / "seen").read_text(errors="surrogateescape").splitlines()
    found = dict(line.partition(": ")[::2] for line in lines if ": " in line)
    found |= dict(line.partition(" -> ")[::2] for line in lines if " -> " in line)
    # The configuration holds our own command, with its own colons and arrows.
    return {n: text for n, text in found.items() if "=" not in n and not n.endswith(".toml")}


def commit_and_compare(repo: Repo, *args: str) -> str:
    """Commit; the tree must be as before, and the index as committed. Return what was said."""
    before = whole(repo)
    done = repo.commit("partial", *args)
    assert done.returncode == 0, done.stderr
    after = whole(repo)
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert after[3] == ""
    assert not (repo.path / ".git/gitgates/rescue").exists()
    repo.git("fsck", "--strict")
    return timeless(done.stderr)


ODD = [os.fsdecode(b"raw\xff"), "new\nline", "-dash", "sp ace", "ünï", "*"]


def test_whatever_is_not_staged(armed: Repo, out: Path, tmp_path: Path) -> None:
    """What the tests below have one by one, in `make thorough`."""
    armed.git("config", "filter.rot.clean", "tr a-z n-za-m")
    armed.git("config", "filter.rot.smudge", "tr a-z n-za-m")
    armed.write(".gitattributes", "*.rot filter=rot\n*.id ident\n")
    for name in ("gone", "folder/in", "file", "link/in", "mode", "kind", "skipped", "assumed"):
        armed.write(name, f"{name} committed")
    armed.write("x.rot", "secret")
    armed.write("y.id", "$Id$\n")
    os.symlink("a", armed.path / "pointer")
    for name in ODD:
        (armed.path / name).write_bytes(b"\0\1committed")
    armed.git("add", ".")
    armed.git("commit", "-qm", "more", "--no-verify")
    armed.write("c", "staged")
    armed.write("a", "a staged")
    armed.git("add", "a", "c")
    armed.write("new", "untracked")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in").write_text("not ours")
    for name in ("gone", "folder/in", "file", "link/in", "kind", "pointer"):
        (armed.path / name).unlink()
    for name in ("folder", "link"):
        (armed.path / name).rmdir()
    armed.write("folder", "now a file")
    armed.write("file/in", "a folder now")
    os.symlink(elsewhere, armed.path / "link")
    os.symlink("c", armed.path / "kind")
    os.symlink("dir/e", armed.path / "pointer")
    (armed.path / "mode").chmod(0o755)
    (armed.path / "dir/d").chmod(0o600)
    for name in ODD:
        (armed.path / name).write_bytes(b"\0\xfe unstaged \r\n")
    armed.write("x.rot", "changed")
    armed.write("y.id", "$Id$ unstaged\n")
    armed.write("deep/later", "announced")
    armed.git("add", "-N", "deep/later")
    for name, flag in (("skipped", "--skip-worktree"), ("assumed", "--assume-unchanged")):
        armed.write(name, "changed")
        armed.git("update-index", flag, name)
    os.link(armed.write("a", "unstaged"), armed.path / "twin")
    os.utime(armed.path / "a", ns=(1, 1))
    inode = os.stat(armed.path / "a").st_ino
    commit_and_compare(armed)
    saw = seen(out)
    shown = ("b", "gone", "folder/in", "file", "link/in", "kind", "mode", "dir/d")
    assert {name: saw[name] for name in shown} == {name: f"{name} committed" for name in shown}
    assert (saw["a"], saw["c"], saw["new"]) == ("a staged", "staged", "untracked")
    assert armed.git("show", "HEAD:a") == "a staged"
    assert (saw["pointer"], saw["x.rot"]) == ("a", "secret")
    assert "deep/later" not in saw
    assert (out / "seen").read_bytes().count(b"\0\1committed") == len(ODD)
    assert (elsewhere / "in").read_text() == "not ours"
    assert os.stat(armed.path / "a").st_ino == os.stat(armed.path / "twin").st_ino == inode


@pytest.mark.thorough
def test_a_partly_staged_file(armed: Repo, out: Path) -> None:
    armed.write("a", "a staged")
    armed.git("add", "a")
    armed.write("a", "a unstaged")
    armed.write("b", "b unstaged")
    armed.write("new", "untracked")
    commit_and_compare(armed)
    assert seen(out) == {
        "a": "a staged",
        "b": "b committed",
        "c": "c committed",
        "dir/d": "dir/d committed",
        "dir/e": "dir/e committed",
        "new": "untracked",
    }
    assert armed.git("show", "HEAD:a") == "a staged"


@pytest.mark.thorough
def test_deleted_files_and_folders_are_shown(armed: Repo, out: Path) -> None:
    armed.write("c", "staged")
    armed.git("add", "c")
    (armed.path / "a").unlink()
    (armed.path / "dir/d").unlink()
    (armed.path / "dir/e").unlink()
    (armed.path / "dir").rmdir()
    commit_and_compare(armed)
    assert seen(out)["dir/d"] == "dir/d committed"
    assert seen(out)["a"] == "a committed"


@pytest.mark.thorough
def test_a_file_in_the_place_of_a_folder_and_the_other_way(armed: Repo, out: Path) -> None:
    armed.write("c", "staged")
    armed.git("add", "c")
    for name in ("dir/d", "dir/e"):
        (armed.path / name).unlink()
    (armed.path / "dir").rmdir()
    armed.write("dir", "now a file")
    (armed.path / "a").unlink()
    armed.write("a/inside", "a is a folder now")
    commit_and_compare(armed)
    assert (seen(out)["a"], seen(out)["dir/d"]) == ("a committed", "dir/d committed")


@pytest.mark.thorough
def test_a_link_in_the_place_of_a_folder(armed: Repo, out: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "d").write_text("not ours")
    armed.write("c", "staged")
    armed.git("add", "c")
    for name in ("dir/d", "dir/e"):
        (armed.path / name).unlink()
    (armed.path / "dir").rmdir()
    os.symlink(elsewhere, armed.path / "dir")
    commit_and_compare(armed)
    assert seen(out)["dir/d"] == "dir/d committed"
    assert (elsewhere / "d").read_text() == "not ours"
    assert not (elsewhere / "e").exists()


@pytest.mark.thorough
def test_modes_links_and_kinds(armed: Repo, out: Path) -> None:
    os.symlink("a", armed.path / "link")
    armed.git("add", "link")
    armed.git("commit", "-qm", "link", "--no-verify")
    armed.write("c", "staged")
    armed.git("add", "c")
    (armed.path / "a").chmod(0o755)
    (armed.path / "b").unlink()
    os.symlink("c", armed.path / "b")
    (armed.path / "link").unlink()
    os.symlink("dir/e", armed.path / "link")
    (armed.path / "dir/d").chmod(0o600)
    commit_and_compare(armed)
    assert (seen(out)["b"], seen(out)["link"]) == ("b committed", "a")


@pytest.mark.thorough
def test_binary_and_odd_names(armed: Repo, out: Path) -> None:
    for name in ODD:
        (armed.path / name).write_bytes(b"\0\1committed")
    armed.git("add", "--all")
    armed.git("commit", "-qm", "odd", "--no-verify")
    for name in ODD:
        (armed.path / name).write_bytes(b"\0\xfe unstaged \r\n")
    armed.write("c", "staged")
    armed.git("add", "c")
    commit_and_compare(armed)
    assert (out / "seen").read_bytes().count(b"\0\1committed") == len(ODD)


@pytest.mark.thorough
def test_intent_to_add_is_not_seen(armed: Repo, out: Path) -> None:
    armed.write("c", "staged")
    armed.git("add", "c")
    armed.write("later", "announced")
    armed.write("deep/later", "announced")
    armed.git("add", "-N", "later", "deep/later")
    commit_and_compare(armed)
    assert "later" not in seen(out)
    assert "deep/later" not in seen(out)


@pytest.mark.samples(1)
@pytest.mark.parametrize("autocrlf", ["true", "input", "false"])
def test_line_endings_stay(armed: Repo, autocrlf: str) -> None:
    armed.git("config", "core.autocrlf", autocrlf)
    armed.git("config", "core.safecrlf", "false")
    armed.write(".gitattributes", "*.txt text\n*.crlf text eol=crlf\n")
    for name in ("mixed.txt", "dos.crlf", "plain"):
        armed.write(name, b"one\r\ntwo\nthree\r\n")
    armed.git("add", ".")
    armed.git("commit", "-qm", "endings", "--no-verify")
    armed.write("mixed.txt", b"one\r\ntwo\nthree\r\nunstaged\n\r\n")
    armed.write("dos.crlf", b"unstaged\nmixed\r\n")
    armed.write("plain", b"unstaged\r\n\n")
    armed.write("c", "staged")
    armed.git("add", "c")
    commit_and_compare(armed)


@pytest.mark.thorough
def test_filters_show_what_a_checkout_would(armed: Repo, out: Path) -> None:
    armed.git("config", "filter.rot.clean", "tr a-z n-za-m")
    armed.git("config", "filter.rot.smudge", "tr a-z n-za-m")
    armed.git("config", "filter.rot.required", "true")
    armed.write(".gitattributes", "*.rot filter=rot\n*.id ident\n")
    armed.write("x.rot", "secret")
    armed.write("y.id", "$Id$\n")
    armed.git("add", ".")
    armed.git("commit", "-qm", "filters", "--no-verify")
    armed.write("x.rot", "changed")
    armed.write("y.id", "$Id$ unstaged\n")
    armed.write("c", "staged")
    armed.git("add", "c")
    assert armed.git("show", ":x.rot") == "frperg"
    commit_and_compare(armed)
    assert seen(out)["x.rot"] == "secret"


def test_a_filter_that_fails_moves_nothing(armed: Repo) -> None:
    armed.git("config", "filter.bad.clean", "cat")
    armed.git("config", "filter.bad.smudge", "false")
    armed.git("config", "filter.bad.required", "true")
    armed.write(".gitattributes", "*.bad filter=bad\n")
    armed.write("x.bad", "committed")
    armed.git("add", ".")
    armed.git("commit", "-qm", "filters", "--no-verify")
    armed.write("x.bad", "unstaged")
    armed.write("c", "staged")
    armed.git("add", "c")
    before = whole(armed)
    done = armed.commit()
    assert done.returncode == 1
    assert b"git checkout-index failed" in done.stderr
    assert b"Traceback" not in done.stderr
    assert whole(armed) == before
    assert not (armed.path / ".git/gitgates/rescue").exists()


@pytest.mark.thorough
def test_flags_of_the_index_stay(armed: Repo, out: Path) -> None:
    armed.write("a", "skipped")
    armed.git("update-index", "--skip-worktree", "a")
    armed.write("b", "assumed")
    armed.git("update-index", "--assume-unchanged", "b")
    armed.write("c", "staged")
    armed.git("add", "c")
    armed.write("c", "unstaged")
    commit_and_compare(armed)
    assert seen(out)["c"] == "staged"


def test_a_sparse_checkout_stays_sparse(armed: Repo, out: Path) -> None:
    armed.git("sparse-checkout", "set", "--no-cone", "/*", "!/dir/")
    armed.write("a", "staged")
    armed.git("add", "a")
    armed.write("a", "unstaged")
    commit_and_compare(armed)
    assert "dir/d" not in seen(out)


def test_submodules_are_left_alone_and_said(armed: Repo, tmp_path: Path) -> None:
    other = Repo.init(tmp_path / "other")
    other.write("x", "1")
    other.commit_all("x")
    armed.git("submodule", "add", "-q", str(other.path), "sub")
    armed.git("commit", "-qm", "sub", "--no-verify")
    armed.write("sub/x", "dirty")
    armed.write("a", "staged")
    armed.git("add", "a")
    armed.write("a", "unstaged")
    said = commit_and_compare(armed)
    assert "gitgates: submodules are not as in the commit: sub; gates see" in said


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("ignored", ["all", "none"])
def test_a_submodule_at_another_commit_is_named(armed: Repo, tmp_path: Path, ignored: str) -> None:
    said = (
        b"gitgates: submodules are not as in the commit: sub; gates see what is checked out there\n"
    )
    other = Repo.init(tmp_path / "other")
    for text in ("1", "2"):
        other.write("x", text)
        other.commit_all(text)
    armed.git("submodule", "add", "-q", str(other.path), "sub")
    armed.git("config", "submodule.sub.ignore", ignored)
    sub = Repo(armed.path / "sub")
    sub.write("untracked", "as in the repository itself")
    assert said not in armed.commit("as committed").stderr
    sub.git("checkout", "-q", "HEAD^")
    assert said in armed.commit("nothing else", "--allow-empty").stderr
    armed.git("update-index", "--cacheinfo", f"160000,{sub.git('rev-parse', 'HEAD')},sub")
    sub.git("checkout", "-q", "-")
    assert said in armed.commit("only its id").stderr


def test_a_submodule_whose_git_folder_is_gone_stops_no_commit(armed: Repo, tmp_path: Path) -> None:
    other = Repo.init(tmp_path / "other")
    other.write("f", "x")
    other.commit_all("other")
    armed.git("submodule", "add", "-q", str(other.path), "sub")
    armed.git("commit", "-qm", "add")
    shutil.rmtree(armed.path / ".git/modules/sub")
    armed.write("a", "staged\n")
    armed.git("add", "a")
    armed.write("a", "unstaged\n")  # is hidden as ever
    done = armed.commit()
    assert done.returncode == 0
    said = b"gitgates: submodule `sub` could not be read: its git folder is missing; "
    assert said in done.stderr
    assert armed.git("show", "HEAD:a") == "staged"
    assert (armed.path / "a").read_text() == "unstaged\n"
    armed.git("commit", "-qm", "all", "a")
    (armed.path / "sub").rename(tmp_path / "sub.old")
    armed.git("submodule", "update", "-q", "--init", "sub")
    assert armed.git("status", "--porcelain") == ""
    # What git itself cannot do is an error as before.
    (armed.path / ".git/index").write_bytes(b"no index")
    assert armed.gitgates("run", "--staged").returncode == 74


def test_with_nothing_unstaged_nothing_is_touched(armed: Repo) -> None:
    armed.write("a", "staged")
    armed.git("add", "a")
    before = files(armed)
    folder = os.stat(armed.path).st_mtime_ns
    assert armed.commit().returncode == 0
    assert files(armed) == before
    assert os.stat(armed.path).st_mtime_ns == folder


@pytest.mark.thorough
def test_hard_links_and_times_stay(armed: Repo) -> None:
    armed.write("a", "staged")
    armed.git("add", "a")
    armed.write("a", "unstaged")
    os.link(armed.path / "a", armed.path / "twin")
    os.utime(armed.path / "a", ns=(1, 1))
    inode = os.stat(armed.path / "a").st_ino
    commit_and_compare(armed)
    assert os.stat(armed.path / "a").st_ino == os.stat(armed.path / "twin").st_ino == inode


def test_keep_leaves_everything(armed: Repo, out: Path) -> None:
    armed.config(CONFIG + "unstaged = 'keep'\n")
    armed.write("a", "staged")
    armed.git("add", "a", "pyproject.toml")
    armed.write("a", "unstaged")
    commit_and_compare(armed)
    assert seen(out)["a"] == "unstaged"


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", ["main", "linked"])
@pytest.mark.parametrize("args", [("-a",), ("--", "a")], ids=["all", "paths"])
def test_what_git_stages_itself_is_not_unstaged(
    armed: Repo, out: Path, where: str, args: tuple[str, ...]
) -> None:
    repo = armed
    if where == "linked":
        armed.git("worktree", "add", "-q", "../linked")
        repo = Repo(armed.path.parent / "linked")
    repo.write("a", "a now")
    repo.write("b", "b now")
    before = files(repo)
    assert repo.commit("x", *args).returncode == 0
    assert files(repo) == before
    assert seen(out)["a"] == "a now"
    assert seen(out)["b"] == ("b now" if args == ("-a",) else "b committed")


def test_a_failing_gate_and_a_broken_gate_give_everything_back(armed: Repo) -> None:
    for command in ("false", "kill -9 $$", "no-such-program"):
        armed.config(f"[gates.g]\ncommand = '{command}'\n[hooks.pre-commit]\ngates = ['g']\n")
        armed.write("a", "staged")
        armed.git("add", "a", "pyproject.toml")
        armed.write("a", "unstaged")
        before = whole(armed)
        assert armed.commit().returncode == 1
        assert whole(armed) == before


@pytest.mark.nightly
def test_ten_thousand_files(repo: Repo, out: Path) -> None:
    assert out.exists()
    names = [f"f/{number % 100}/{number}" for number in range(10_000)]
    for number in range(100):
        (repo.path / f"f/{number}").mkdir(parents=True)
    for name in names:
        (repo.path / name).write_bytes(b"committed")
    repo.config("[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n")
    repo.commit_all("many")
    repo.shim("pre-commit")
    for name in names:
        (repo.path / name).write_bytes(b"unstaged")
    repo.write("staged", "x")
    repo.git("add", "staged")
    before = files(repo)
    assert repo.commit().returncode == 0
    assert files(repo) == before


GATE = "[gates.g]\ncommand = '{}'\n[hooks.pre-commit]\ngates = ['g']\n"


@pytest.mark.samples(1)
@pytest.mark.parametrize("edit", ["relaxed", "removed", "deleted"])
def test_a_commit_is_checked_as_its_own_configuration_says(repo: Repo, edit: str) -> None:
    repo.config(GATE.format("false"))
    repo.write("a", "x")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base", "--no-verify")
    repo.shim("pre-commit")
    repo.write("a", "y")
    repo.git("add", "a")
    if edit == "relaxed":
        repo.config(GATE.format("true"))
    elif edit == "removed":
        repo.write("pyproject.toml", "[project]\nname = 'x'\n")
    else:
        (repo.path / "pyproject.toml").unlink()
    before = whole(repo)
    done = repo.commit()
    assert done.returncode == 1
    assert b"blocked by `g`" in done.stderr
    assert whole(repo) == before


def test_a_gate_that_is_not_committed_yet_does_not_count(repo: Repo) -> None:
    repo.config(GATE.format("true"))
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.config(GATE.format("false"))
    done = repo.commit("x", "--allow-empty")
    assert done.returncode == 0
    assert b"has uncommitted changes, which do not apply" in done.stderr
    assert repo.commit("x", "-a").returncode == 1
