"""The folder of a run: each attempt of a cycle in one, whole or not at all, copied, and pruned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from artifact_support import FAILED, PASSED, START_S, Place, save
from conftest import SRC, Repo

from gitgates.store import runs


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    return Place(state_abs=str(state), run_abs=runs.new_run(str(state)), root_abs=str(root))


def read(folder: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "result.json").read_bytes())
    return found


def test_names_of_runs_sort_by_time_and_are_unique() -> None:
    names = [runs.new_run("/s") for _ in range(1000)]
    assert len(set(names)) == 1000
    assert names == sorted(names)


def test_attempts_of_one_cycle_are_one_folder(place: Place) -> None:
    for one in (FAILED, FAILED, PASSED):
        assert save(place, one) == ()
    assert [a["verdict"] for a in read(place.run_abs)["quality_gates"]["attempts"]] == [
        "blocked",
        "blocked",
        "passed",
    ]
    assert sorted(os.listdir(place.run_abs)) == ["result.json", "summary.md"]
    assert os.stat(f"{place.run_abs}/result.json").st_mode & 0o777 == 0o600
    assert os.stat(place.run_abs).st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("logs", "run"), [("/r/logs", "/r"), ("/logs/r/logs/attempt-12", "/logs/r"), ("", "")]
)
def test_the_run_of_logs_is_known(logs: str, run: str) -> None:
    assert runs.run_of(logs) == run


@pytest.mark.parametrize("torn", [b"", b"{", b'{"version": 1}', b"[" * 100_000, b"\xff"])
def test_a_torn_result_is_kept_aside_and_said(place: Place, torn: bytes) -> None:
    save(place, FAILED)
    path = Path(place.run_abs, "result.json")
    path.write_bytes(torn)
    notes = save(place, PASSED)
    kept = next(p for p in path.parent.iterdir() if p.name.startswith("result.json.damaged"))
    assert kept.read_bytes() == torn
    assert notes == (
        (
            f"{place.run_abs}: result.json was damaged; a new one was started, the old one is "
            f"{kept.name}"
        ),
    )
    assert read(place.run_abs)["quality_gates"]["retry_attempts"] == 0


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from artifact_support import FAILED, Place, save
place = Place(state_abs={state!r}, run_abs={run!r}, root_abs={root!r}, artifacts_dir="out")
for _ in range(10):
    notes = save(place, FAILED)
    assert not notes, notes
"""


def test_parallel_writers_lose_no_attempt(place: Place) -> None:
    code = WRITER.format(
        tests=str(SRC / "tests"), state=place.state_abs, run=place.run_abs, root=place.root_abs
    )
    writers = [subprocess.Popen([sys.executable, "-c", code], cwd=SRC) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    attempts = read(place.run_abs)["quality_gates"]["attempts"]
    assert [a["attempt"] for a in attempts] == list(range(1, 21))
    copy = Path(place.root_abs, "out", os.path.basename(place.run_abs))
    assert read(copy) == read(place.run_abs)
    assert sorted(os.listdir(copy)) == ["result.json", "summary.md"]


@pytest.mark.parametrize("where", ["runs", "run"])
def test_a_file_in_the_way_is_a_note_and_no_failure(place: Place, where: str) -> None:
    path = Path(place.run_abs if where == "run" else f"{place.state_abs}/runs")
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    notes = save(place, FAILED)
    assert notes[0].startswith(f"{place.run_abs}: no results written: ")
    assert path.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_a_note(place: Place) -> None:
    Path(place.state_abs).mkdir()
    Path(place.state_abs).chmod(0o500)
    assert save(place, FAILED) == (f"{place.run_abs}: no results written: Permission denied",)


FULL = """
import errno, os, sys
sys.path.insert(0, {tests!r})
from artifact_support import FAILED, Place, save
def full(fd): raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = full
print(save(Place(state_abs={state!r}, run_abs={run!r}, root_abs={root!r}), FAILED))
"""


def test_a_full_disk_leaves_the_old_result_and_no_rest(place: Place) -> None:
    save(place, FAILED)
    before = read(place.run_abs)
    code = FULL.format(
        tests=str(SRC / "tests"), state=place.state_abs, run=place.run_abs, root=place.root_abs
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=SRC, capture_output=True, check=True)
    assert b"no results written: No space left on device" in done.stdout
    assert read(place.run_abs) == before
    assert sorted(os.listdir(place.run_abs)) == ["open", "result.json", "summary.md"]


# Copies


def test_copies_are_ignored_by_git_and_follow_the_cycle(place: Place) -> None:
    place = place._replace(artifacts_dir="build/out")
    log = Path(runs.log_abs(f"{place.run_abs}/logs", "a", 0))
    log.parent.mkdir(parents=True)
    log.write_text("all")
    save(place, FAILED)
    out = Path(place.root_abs, "build/out")
    copy = out / os.path.basename(place.run_abs)
    (copy / "mine.txt").write_text("mine")
    save(place, PASSED)
    assert (out / ".gitignore").read_text() == "*\n"
    assert sorted(os.listdir(out)) == [".gitignore", copy.name]
    assert sorted(os.listdir(copy)) == ["logs", "mine.txt", "result.json", "summary.md"]
    assert (copy / "logs/a.log").read_text() == "all"
    assert not list(Path(place.root_abs).rglob(".*.gitgates-*"))
    assert read(copy) == read(place.run_abs)
    assert read(copy)["quality_gates"]["retry_attempts"] == 1


def test_a_folder_of_somebody_else_gets_no_gitignore(place: Place) -> None:
    Path(place.root_abs, "out").mkdir()
    save(place._replace(artifacts_dir="out"), PASSED)
    assert os.listdir(f"{place.root_abs}/out") == [os.path.basename(place.run_abs)]


def test_a_link_that_leads_out_is_not_followed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Path(place.root_abs, "out").symlink_to(tmp_path / "elsewhere")
    for folder in ("out", "out/deeper"):
        notes = save(place._replace(artifacts_dir=folder), PASSED)
        assert notes[0].endswith("no results copied: a symbolic link points outside the repository")
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_link_inside_is_followed(place: Place) -> None:
    Path(place.root_abs, "real").mkdir()
    Path(place.root_abs, "out").symlink_to("real")
    assert save(place._replace(artifacts_dir="out"), PASSED) == ()
    assert os.listdir(f"{place.root_abs}/real") == [os.path.basename(place.run_abs)]


@pytest.mark.parametrize("what", ["out", "copy"])
def test_a_file_in_place_of_a_copy_stays(place: Place, what: str) -> None:
    name = "out" if what == "out" else f"out/{os.path.basename(place.run_abs)}"
    path = Path(place.root_abs, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    notes = save(place._replace(artifacts_dir="out"), PASSED)
    assert "artifacts_dir: no results copied: " in notes[0]
    assert path.read_text() == "mine"


# Pruning


def make_runs(place: Place, number: int) -> list[str]:
    made = [runs.new_run(place.state_abs) for _ in range(number)]
    for run_abs in made:
        os.makedirs(f"{run_abs}/logs/attempt-2")
        Path(run_abs, "logs/attempt-2/a.log").touch()
    return [os.path.basename(run_abs) for run_abs in made]


def test_the_newest_runs_are_kept(place: Place) -> None:
    names = make_runs(place, 5)
    assert runs.prune(place.state_abs, 2) == 3
    assert runs.run_ids(place.state_abs) == names[3:]
    assert runs.prune(place.state_abs, 0) == 2
    assert runs.prune(place.state_abs, 0) == 0


HOLDER = """
import os, sys
from gitgates.store import runs
run_abs = runs.new_run({state!r})
runs.make(run_abs)
print(os.path.basename(run_abs), flush=True)
sys.stdin.read()
"""


def test_a_run_that_is_written_is_not_pruned_by_another(place: Place) -> None:
    code = HOLDER.format(state=place.state_abs)
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=SRC, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdin
        first = holder.stdout.readline().decode().strip()
        make_runs(place, 2)
        assert runs.prune(place.state_abs, 0) == 2
        holder.stdin.close()
        holder.wait(60)
    assert runs.run_ids(place.state_abs) == [first]
    assert runs.prune(place.state_abs, 0) == 1


def test_a_cycle_that_may_go_on_is_not_pruned_for_a_day(place: Place) -> None:
    save(place, FAILED)
    assert runs.prune(place.state_abs, 0) == 0
    os.utime(f"{place.run_abs}/open", (START_S, START_S))
    assert runs.prune(place.state_abs, 0) == 1


@pytest.mark.parametrize("host", ["git", "pre-commit", "manual"])
def test_a_host_that_tells_nobody_leaves_no_open_cycle(place: Place, host: str) -> None:
    save(place, FAILED._replace(host=host))
    assert runs.prune(place.state_abs, 0) == 1


def test_with_none_to_be_kept_the_copy_stays(place: Place) -> None:
    save(place._replace(keep_runs=0, artifacts_dir="out"), PASSED)
    assert runs.run_ids(place.state_abs) == []
    assert read(f"{place.root_abs}/out/{os.path.basename(place.run_abs)}")["outcome"] == "passed"


def test_the_run_itself_is_not_the_one_to_go(place: Place) -> None:
    make_runs(place, 2)
    save(place._replace(keep_runs=1), PASSED)
    assert os.path.exists(f"{place.run_abs}/result.json")


def test_a_link_in_place_of_a_run_is_left_alone(place: Place, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    make_runs(place, 1)
    Path(place.state_abs, "runs/20000101T000000Z-1").symlink_to(tmp_path / "mine")
    runs.prune(place.state_abs, 0)
    assert (tmp_path / "mine/file").exists()


# Whole commands

TWO = "[gates.good]\ncommand = 'echo fine'\n[gates.bad]\ncommand = 'echo no; exit 3'\n"


def results(repo: Repo) -> list[dict[str, Any]]:
    folder = repo.path / ".git/gitgates/runs"
    return [read(path.parent) for path in sorted(folder.glob("*/result.json"))]


def test_a_run_by_hand_always_leaves_results(repo: Repo) -> None:
    repo.config(TWO + "[hooks.manual]\ngates = ['good']\n[hooks.pre-push]\ngates = ['bad']\n")
    assert repo.gitgates("run").returncode == 0
    assert repo.gitgates("run", "pre-push").returncode == 1
    first, second = results(repo)
    assert (first["host"], first["hook"], first["outcome"]) == ("manual", "manual", "passed")
    assert (second["hook"], second["outcome"]) == ("pre-push", "blocked")
    assert second["quality_gates"]["max_retries"] == 0
    result = second["quality_gates"]["attempts"][0]["results"][0]
    assert (result["exit_code"], result["output"], result["log"]) == (3, "no\n", "logs/bad.log")
    folder = repo.path / ".git/gitgates/runs" / second["execution_id"]
    assert (folder / "logs/bad.log").read_text() == "no\n"


def test_a_hook_of_git_leaves_results_only_of_what_did_not_pass(repo: Repo) -> None:
    repo.config(TWO + "[hooks.pre-commit]\ngates = ['good']\n[hooks.commit-msg]\ngates = ['bad']\n")
    repo.shim("pre-commit", "commit-msg")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode == 1
    assert [one["hook"] for one in results(repo)] == ["commit-msg"]
    assert results(repo)[0]["host"] == "git"


def test_a_stage_of_the_framework_leaves_them_as_well(repo: Repo) -> None:
    repo.config(TWO + "[hooks.pre-commit]\ngates = ['good', 'bad']\n")
    assert repo.gitgates("pre-commit-hook", "pre-commit").returncode == 1
    assert [(one["host"], one["outcome"]) for one in results(repo)] == [("pre-commit", "blocked")]


def test_results_that_cannot_be_written_change_nothing_else(repo: Repo) -> None:
    repo.config(TWO + "[hooks.manual]\ngates = ['good']\n")
    repo.write(".git/gitgates/runs", "in the way")
    done = repo.gitgates("run", "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "passed"
    assert b": no results written: " in done.stderr


def test_keep_runs_and_artifacts_dir_of_the_configuration(repo: Repo) -> None:
    repo.config(
        "keep_runs = 1\nartifacts_dir = 'out'\n" + TWO + "[hooks.manual]\ngates = ['bad']\n"
    )
    repo.write(".gitignore", "")
    repo.git("add", ".")
    for _ in range(2):
        repo.gitgates("run")
    assert len(results(repo)) == 1
    assert len(list((repo.path / "out").glob("*/logs/bad.log"))) == 2
    assert repo.git("status", "--porcelain", "-uall") == "A  .gitignore\nA  pyproject.toml"
