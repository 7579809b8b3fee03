"""What gates need in a private checkout is installed there, once, and nothing is a link."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
from process_support import has_ended, is_running, wait_for
from worktree_state import where, whole

from gitgates.core.errors import StateError
from gitgates.git.checkout import matching_entries
from gitgates.git.repo import find_repo
from gitgates.store.slots import KEPT_BYTES, prune_slots, take_slot
from gitgates.worktree.cache import cache_folder, cache_path, remove_orphans
from gitgates.worktree.checkouts import Checkout, check_out
from gitgates.worktree.lock_files import install_commands
from gitgates.worktree.setup import SetupError, WorktreeSettings

pytestmark = pytest.mark.slow

# What `npm ci` does: it empties the folder first, through a link, too.
INSTALL = 'rm -rf deps/*; mkdir -p deps; cat app.lock > deps/installed; echo x >> "$OUT/log"'
SETUP = WorktreeSettings(setup=(INSTALL,), inputs=("*.lock",))


@pytest.fixture(name="project")
def _project(repo: Repo, out: Path) -> Repo:
    assert out.exists()
    repo.write(".gitignore", "deps/\n.env\n")
    repo.write("app.lock", "1")
    repo.write("a", "first")
    repo.commit_all("first")
    repo.write("deps/installed", "the user's")
    return repo


def out_of(repo: Repo, settings: WorktreeSettings = SETUP, treeish: str = "HEAD") -> Checkout:
    return check_out(where(repo), treeish, settings)


def text(place: Checkout, name: str) -> str:
    return (Path(place.root_abs) / name).read_text()


def installed(out: Path) -> int:
    return len((out / "log").read_text().splitlines())


def commit(repo: Repo, name: str, content: str) -> None:
    repo.write(name, content)
    repo.git("add", name)
    repo.git("commit", "-qm", f"{name} {content}")


def test_it_is_installed_once_and_again_when_its_inputs_change(project: Repo, out: Path) -> None:
    before = whole(project)
    with out_of(project) as place:
        assert text(place, "deps/installed") == "1"
        (Path(place.root_abs) / "left").touch()
        (Path(place.root_abs) / "deps/by a gate").touch()
    assert whole(project) == before
    commit(project, "a", "second")
    with out_of(project) as place:
        assert (text(place, "a"), text(place, "deps/installed")) == ("second", "1")
        assert not os.path.exists(f"{place.root_abs}/left")
    assert installed(out) == 1
    commit(project, "app.lock", "2")
    with out_of(project) as place:
        assert text(place, "deps/installed") == "2"
        assert os.listdir(f"{place.root_abs}/deps") == ["installed"]
    with out_of(project, SETUP._replace(setup=())) as place:
        assert not os.path.exists(f"{place.root_abs}/deps")
    assert installed(out) == 2


def test_the_environment_leads_into_the_checkout(
    project: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project.path
    (tmp_path / "elsewhere").symlink_to(root / "deps")
    monkeypatch.setenv("VIRTUAL_ENV", f"{root}/deps")
    monkeypatch.setenv("PATH", f"{root}/deps/bin:{tmp_path}/elsewhere:{os.environ['PATH']}")
    monkeypatch.setenv("OPTIONS", f"--at={root}/x --near={root}-other")
    monkeypatch.setenv("TWO", f"{root}/x --at={root}&{tmp_path}/elsewhere/y")
    monkeypatch.setenv("REQUIRED", f"--require={tmp_path}/elsewhere/x.js")
    with check_out(find_repo(str(root), dict(os.environ)), "HEAD", SETUP) as place:
        env, there = place.repo.env, place.root_abs
        assert env["VIRTUAL_ENV"] == f"{there}/deps"
        assert env["PATH"].split(":")[:2] == [f"{there}/deps/bin", f"{there}/deps"]
        assert env["OPTIONS"] == f"--at={there}/x --near={root}-other"
        assert env["TWO"] == f"{there}/x --at={there}&{there}/deps/y"
        assert env["REQUIRED"] == f"--require={there}/deps/x.js"
    inside = {**os.environ, "HOME": f"{root}/home", "IN_IT": f"--at={root}/home/x"}
    with check_out(find_repo(str(root), inside), "HEAD", SETUP) as place:
        env = place.repo.env
        assert env["PATH"].startswith(f"{place.root_abs}/deps/bin:")
        assert (env["HOME"], env["IN_IT"]) == (f"{root}/home", f"--at={root}/home/x")
    at_home = {**os.environ, "HOME": str(root)}  # then programs are in it
    with check_out(find_repo(str(root), at_home), "HEAD", SETUP) as place:
        assert place.repo.env["PATH"].startswith(f"{root}/deps/bin:")


def test_links_to_programs_and_packages_are_copied(project: Repo, tmp_path: Path) -> None:
    project.write(".gitignore", "node_modules\n.venv\n")
    project.write("packages/lib/index.js", "")
    project.commit_all("a workspace")
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "notes").write_text("of the person")
    for path, target in (
        ("node_modules/lib", "../packages/lib"),
        ("node_modules/own", str(project.path / "packages/lib")),
        (".venv/bin/python3", "python"),
        (".venv/bin/python", str(tmp_path / "program")),
        (".venv/notes", str(tmp_path / "notes")),
        (".venv/folder", str(tmp_path)),
        (".venv/lib", "../packages/lib"),
    ):
        (project.path / path).parent.mkdir(parents=True, exist_ok=True)
        (project.path / path).symlink_to(target)
    with out_of(project, WorktreeSettings(copy=("node_modules", ".venv"))) as place:
        root = Path(place.root_abs)
        links = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink()}
        assert links == {"node_modules/lib", ".venv/bin/python", ".venv/bin/python3"}
        assert (root / "node_modules/lib/index.js").resolve() == root / "packages/lib/index.js"
        assert len(place.notes) == 4


def test_ignored_files_are_copied_each_time(project: Repo, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("1")
    (project.path / ".env").symlink_to(tmp_path / "secret")
    project.write("deps/sub/file", "x")
    (project.path / "deps/inside").symlink_to("sub/file")
    (project.path / "deps/out").symlink_to(project.path / "a")
    settings = WorktreeSettings(copy=(".env", "deps/", "a", "none", "../secret"))
    with out_of(project, settings) as place:
        root = Path(place.root_abs)
        assert (text(place, ".env"), (root / ".env").is_symlink()) == ("1", False)
        assert (root / "deps/inside").readlink() == Path("sub/file")
        assert not (root / "deps/out").is_symlink()
        assert Repo(root).git("status", "--porcelain") == ""
        assert place.notes == (
            "`../secret` is not copied: it is not below the root",
            f"{project.path}/deps/out is not copied: it leads out of {project.path}/deps",
            "`a` is not copied: git does not ignore it",
            "`none` is not copied: the working tree does not have it",
        )
        root.joinpath(".env").write_text("by a gate")
    (tmp_path / "secret").write_text("2")
    project.git("worktree", "add", "-q", str(tmp_path / "linked"))
    with out_of(Repo(tmp_path / "linked"), settings) as place:
        assert text(place, ".env") == "2"
    assert (tmp_path / "secret").read_text() == "2"


def test_nothing_is_copied_through_a_link(project: Repo, tmp_path: Path) -> None:
    (tmp_path / "shared/cache").mkdir(parents=True)
    (tmp_path / "shared/cache/file").write_text("shared")
    (project.path / "data").symlink_to(tmp_path / "shared")
    project.write("file", "in the place of a folder")
    commit(project, ".gitignore", "cache\nlink\n.env\n")
    project.git("add", "data", "file")
    project.git("commit", "-qm", "linked")
    for name in ("data", "file"):
        (project.path / name).unlink()
    project.write("data/cache/file", "the user's")
    project.write("file/cache", "the user's")
    project.write(".env", "copied")
    (project.path / "link").symlink_to(tmp_path / "shared")
    names = ("data/cache", "file/cache", "link/cache", ".env")
    with out_of(project, WorktreeSettings(copy=names)) as place:
        assert text(place, ".env") == "copied"
        assert place.notes == (
            f"`data/cache` is not copied: {place.root_abs}/data is no folder",
            f"`file/cache` is not copied: {place.root_abs}/file is no folder",
            "`link/cache` is not copied: git does not ignore it",
        )
    assert (tmp_path / "shared/cache/file").read_text() == "shared"


def test_what_is_no_longer_copied_is_gone(project: Repo, out: Path) -> None:
    project.write("deps/.env", "1")
    settings = SETUP._replace(copy=("deps/.env",))
    for content in "12":
        project.write("deps/.env", content)
        with out_of(project, settings) as place:
            assert (text(place, "deps/.env"), text(place, "deps/installed")) == (content, "1")
    assert installed(out) == 1
    (project.path / "deps/.env").unlink()
    with out_of(project, settings) as place:
        assert os.listdir(f"{place.root_abs}/deps") == ["installed"]


def test_what_a_gate_has_removed_is_installed_again(project: Repo, out: Path) -> None:
    project.write("deps/.env", "copied")  # makes the folder anew
    settings = SETUP._replace(copy=("deps/.env",))
    with out_of(project, settings) as place:
        shutil.rmtree(f"{place.root_abs}/deps")
    with out_of(project, settings) as place:
        assert (text(place, "deps/installed"), installed(out)) == ("1", 2)


READ_ONLY = """
import os
from gitgates.git.repo import find_repo
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import WorktreeSettings

command = "mkdir -p deps; cp app.lock deps/installed; chmod -R a-w deps"
settings = WorktreeSettings(setup=(command,), inputs=("*.lock",), copy=(".env",))
with check_out(find_repo(os.getcwd(), dict(os.environ)), "HEAD", settings) as place:
    print(*(open(f"{place.root_abs}/{name}").read() for name in ("deps/installed", ".env")))
"""


def test_folders_that_it_has_made_read_only_are_removed(project: Repo) -> None:
    is_root = os.geteuid() == 0
    if is_root and not shutil.which("setpriv"):
        pytest.skip("root may remove everything")
    without = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if is_root else ()
    project.write(".env", "copied")
    for content in "234":
        commit(project, "app.lock", content)
        done = project.ask(*without, sys.executable, "-c", READ_ONLY)
        assert (done.stdout, done.stderr) == (f"{content} copied\n".encode(), b"")


def test_what_git_has_in_one_commit_is_installed_in_another(project: Repo) -> None:
    settings = SETUP._replace(setup=(INSTALL, "echo made > deps/more; echo made > made"))
    commit(project, ".gitignore", "")
    with out_of(project, settings) as place:
        assert (text(place, "made"), text(place, "deps/installed")) == ("made\n", "1")
    commit(project, "made", "by hand")
    commit(project, "deps/installed", "by hand")
    for again in (settings, settings._replace(setup=(*settings.setup, "true"))):
        for treeish, made, at in (("HEAD", "by hand", "by hand"), ("HEAD~2", "made\n", "1")):
            with out_of(project, again, treeish) as place:
                assert (text(place, "made"), text(place, "deps/installed")) == (made, at)


def test_what_fails_is_said_and_tried_again(project: Repo) -> None:
    bad = WorktreeSettings(setup=("mkdir deps", "echo one; echo two >&2; exit 3"), inputs=())
    for _time in range(2):
        with pytest.raises(SetupError, match="failed with exit status 3: no gate can run") as told:
            out_of(project, bad)
        assert "\n    one\n    two" in told.value.message
        log = told.value.hint.removeprefix("Its whole output: ")
        assert Path(log).read_text() == "one\ntwo\n"
    with pytest.raises(SetupError, match=r"did not end within the limit of 0\.2 s"):
        check_out(where(project), "HEAD", WorktreeSettings(setup=("sleep 9",)), limit_s=0.2)
    with out_of(project) as place:
        assert text(place, "deps/installed") == "1"


def test_what_it_changes_of_the_commit_is_put_back(project: Repo) -> None:
    change = "echo 2 > app.lock; git config core.hooksPath evil; mkdir deps"
    with out_of(project, WorktreeSettings(setup=(change,))) as place:
        assert text(place, "app.lock") == "1"
        assert Repo(Path(place.root_abs)).git("config", "core.hooksPath") == "/dev/null"
        assert place.notes == ("`setup` has changed app.lock in the private checkout: put back",)


@pytest.mark.parametrize("at", ["setup", "gate"])
def test_what_is_left_of_a_killed_one_ends(project: Repo, out: Path, at: str) -> None:
    wait = 'mkdir deps; echo $$ > "$OUT/pid"; while :; do echo >> deps/more; sleep 0.05; done'
    settings = WorktreeSettings(setup=(wait if at == "setup" else "mkdir deps",), inputs=())
    program = f"""
import subprocess
from gitgates.core import environ
from gitgates.git.repo import find_repo
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import WorktreeSettings
repo = find_repo({str(project.path)!r}, environ.read())
place = check_out(repo, "HEAD", {settings!r})
subprocess.run(("sh", "-c", {wait.removeprefix("mkdir deps; ")!r}), cwd=place.root_abs,
    env=place.repo.env, start_new_session=True)
"""
    running = subprocess.Popen((sys.executable, "-c", program), env={**os.environ})
    wait_for(out / "pid", running)
    time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    left = int((out / "pid").read_text())
    assert is_running(left)
    with out_of(project) as place:
        assert has_ended(left)
        assert sorted(os.listdir(place.root_abs)) == [".git", ".gitignore", "a", "app.lock", "deps"]
        assert os.listdir(f"{place.root_abs}/deps") == ["installed"]


def test_an_object_is_what_its_id_says(project: Repo) -> None:
    blob = project.git("rev-parse", "HEAD:a")
    project.write("other", "replaced")
    project.git("replace", blob, project.git("hash-object", "-w", "other"))
    with out_of(project) as place:
        assert text(place, "a") == "first"
        assert Repo(Path(place.root_abs)).git("show", "HEAD:a") == "first"


def test_the_cache_is_never_in_the_working_tree(
    project: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "linked"))
    monkeypatch.setenv("XDG_CACHE_HOME", f"{project.path}/cache")
    for repo in (project, Repo(tmp_path / "linked")):
        assert cache_path(where(repo)).startswith(f"{os.environ['HOME']}/.cache/gitgates/")
    monkeypatch.setenv("HOME", str(project.path))
    with pytest.raises(StateError, match="is in the working tree"):
        cache_folder(where(project))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(StateError, match="cannot be written"):
        cache_folder(where(project))


def test_what_is_of_no_repository_any_more_is_removed(project: Repo, tmp_path: Path) -> None:
    other = Repo.init(tmp_path / "other")
    kept, gone = cache_folder(where(project)), cache_folder(where(other))
    slot = take_slot(f"{gone}/checkouts")
    os.rename(other.path, tmp_path / "moved")
    assert remove_orphans(where(project).env) == 0  # it is in use
    slot.release()
    assert remove_orphans(where(project).env) == 1
    assert (os.path.exists(kept), os.path.exists(gone)) == (True, False)


def test_who_only_looks_leaves_what_is_installed(project: Repo, out: Path) -> None:
    with out_of(project):
        pass
    commit(project, "a", "second")
    with check_out(where(project), "HEAD", None) as place:
        assert text(place, "a") == "second"
    with out_of(project):
        assert installed(out) == 1


def test_of_no_patterns_no_file_is_an_input(project: Repo, out: Path) -> None:
    assert matching_entries(where(project).git, ()) == []
    for content in ("1", "2"):
        commit(project, "app.lock", content + content)
        with out_of(project, SETUP._replace(inputs=())):
            pass
    assert installed(out) == 1


def test_large_ones_are_not_kept(project: Repo) -> None:
    with out_of(project), out_of(project) as place:
        folder = os.path.dirname(place.root_abs)
    second = take_slot(folder), take_slot(folder)
    second[1].end("", KEPT_BYTES + 1)
    for slot in second:
        slot.release()
    assert prune_slots(folder) == 1
    assert (os.path.exists(f"{folder}/1"), os.path.exists(f"{folder}/2")) == (True, False)


def test_each_language_is_installed_once(tmp_path: Path) -> None:
    def commands(*names: str) -> tuple[str, ...]:
        for old in tmp_path.iterdir():
            old.unlink()
        for name in names:
            (tmp_path / name).write_text("# yarn lockfile v1\n")
        return install_commands(str(tmp_path))

    assert commands("uv.lock", "requirements.txt", "package-lock.json") == (
        "uv sync --locked",
        "npm ci",
    )
    assert commands("yarn.lock")[0].endswith("--frozen-lockfile")
    assert commands("Cargo.lock", "go.sum") == ()


@pytest.mark.thorough
def test_whenever_it_is_killed_the_next_one_is_whole(project: Repo, out: Path) -> None:
    """Two commits in turn, with other lock files, each killed at a moment that grows."""
    commit(project, "app.lock", "2")
    commits = [project.git("rev-parse", "HEAD~1"), project.git("rev-parse", "HEAD")]
    install = "mkdir deps; for i in 1 2 3 4; do sleep 0.02; echo x >> deps/part; done; cat app.lock"
    settings = WorktreeSettings(setup=(f"{install} > deps/installed",), inputs=("*.lock",))
    program = f"""
import sys
from gitgates.core import environ
from gitgates.git.repo import find_repo
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import WorktreeSettings
repo = find_repo({str(project.path)!r}, environ.read())
print(flush=True)
for treeish in {commits!r} * 9:
    with check_out(repo, treeish, {settings!r}):
        pass
"""
    for moment in range(40):
        running = subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE)
        assert running.stdout
        running.stdout.readline()
        time.sleep(moment * 0.017)
        running.kill()
        running.communicate()
        lock = "12"[moment % 2]
        with out_of(project, settings, commits[moment % 2]) as place:
            root = Path(place.root_abs)
            assert (text(place, "deps/installed"), text(place, "app.lock")) == (lock, lock)
            assert text(place, "deps/part") == "x\n" * 4
            assert Repo(root).git("status", "--porcelain", "--ignored") == "!! deps/"
    assert out.exists()
