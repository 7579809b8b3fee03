"""`gitgates land` with real git and real gates: what lands, what is ejected, what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_support import Agent
from conftest import Repo
from land_support import CONFIG, begin, branch, entry, first_parents, land, opened, runs
from proof_support import make_key, sign_with

from gitgates.features.land.queue import LANDING, Queue
from gitgates.store.log import session_journal


@pytest.mark.slow
def test_a_batch_lands_each_as_its_own_merge_after_one_run(repo: Repo, out: Path) -> None:
    begin(repo)
    tips = [branch(repo, name, {f"{name}.txt": name}) for name in ("a", "b", "c")]
    repo.write("shared.txt", "somebody's\n")
    status, rows = land(repo, "a", "b", "c")
    assert (status, {row["state"] for row in rows.values()}, runs(out)) == (0, {"landed"}, 1)
    assert first_parents(repo) == [
        "Merge branch 'c'",
        "Merge branch 'b'",
        "Merge branch 'a'",
        "base",
    ]
    assert [repo.git("rev-parse", name) for name in ("a", "b", "c")] == tips
    assert (repo.path / "shared.txt").read_text() == "somebody's\n"
    assert repo.git("rev-parse", "main^2") == tips[2]
    noted = repo.git("notes", "--ref=gitgates-land", "show", "main~1").splitlines()
    assert noted[:2] == ["Landed-by: Test <test@example.invalid>", "Branch: b"]
    assert noted[3].startswith(
        f"Tested: as part of a batch, {rows['c']['commit']}; this commit may"
    )
    listed = repo.gitgates("land", "--list").stdout.decode().splitlines()
    assert [line.split()[1:5] for line in listed] == [
        ["landed", rows[name]["commit"][:7], name, "→"] for name in ("a", "b", "c")
    ]
    # What is there already, or proved for the same tree, runs no gate.
    assert [land(repo, "a")[1]["a"]["state"], runs(out)] == ["nothing to land", 1]
    repo.git("checkout", "-q", "shared.txt")
    repo.git("update-ref", "refs/heads/main", "main~3")
    branch(repo, "all", {f"{name}.txt": name for name in ("a", "b", "c")})
    status, rows = land(repo, "all")
    assert (status, rows["all"]["gates"][0]["status"], runs(out)) == (0, "proved", 1)


@pytest.mark.slow
def test_the_one_at_fault_is_ejected_and_the_others_land(repo: Repo, out: Path) -> None:
    begin(repo)
    branch(repo, "green", {"green.txt": ""})
    branch(repo, "red", {"red.txt": ""})
    branch(repo, "last", {"last.txt": ""})
    status, rows = land(repo, "green", "red", "last")
    assert status == 1
    assert [rows[name]["state"] for name in ("green", "red", "last")] == [
        "landed",
        "ejected",
        "landed",
    ]
    assert first_parents(repo) == ["Merge branch 'last'", "Merge branch 'green'", "base"]
    said = rows["red"]["feedback"]
    assert said.startswith("`red` was not landed on `main`.\nThe gates ran on ")
    assert "It changes 2 paths: green.txt, red.txt." in said
    assert "1 of 1 gates failed (`check`)." in said
    assert "run `gitgates land` again" in said
    assert runs(out) == 6  # all and all again, green, green and red twice, last


def test_a_conflict_is_ejected_before_any_gate(repo: Repo, out: Path) -> None:
    begin(repo)
    branch(repo, "mine", {"shared.txt": "mine\n"})
    repo.git("checkout", "-q", "main")
    repo.write("shared.txt", "theirs\n")
    repo.commit_all("write theirs")
    repo.git("checkout", "-q", "mine")
    before = repo.git("rev-parse", "main")
    dry = repo.gitgates("land", "--dry-run")
    done = repo.gitgates("land")
    assert (dry.returncode, done.returncode, runs(out)) == (1, 1, 0)
    for said in (dry.stdout.decode(), done.stdout.decode()):
        assert "`mine` conflicts with `main` in 1 file. No gate has run." in said
        assert "write theirs (Test)" in said
        assert "write shared.txt (Test)" in said
        assert "theirs\n=======\nmine\n>>>>>>>" in said
    assert repo.git("rev-parse", "main") == before


def test_what_was_landing_when_somebody_was_killed_has_landed_or_waits(repo: Repo) -> None:
    begin(repo, CONFIG.replace("pre-push", "commit-msg"))
    tips = {name: branch(repo, name, {f"{name}.txt": ""}) for name in ("done", "open")}
    queue = Queue(opened(repo))
    queue.change(
        lambda _before: [
            entry(name, tip, number=number, state=LANDING, commit=tip, tested=tip)
            for number, (name, tip) in enumerate(tips.items(), 1)
        ]
    )
    repo.git("update-ref", "refs/heads/main", tips["done"])
    repo.git("checkout", "-q", "main")
    assert repo.gitgates("land").returncode == 1
    ends = {each.branch: (each.state, each.why) for each in queue.entries()}
    assert ends["done"] == ("landed", "")
    assert ends["open"] == ("ejected", "it has no gates for pre-push, so nothing was checked")
    assert repo.git("notes", "--ref=gitgates-land", "show", "main").startswith("Landed-by: Test")


@pytest.mark.slow
def test_a_landing_waits_for_local_changes_where_the_target_is_checked_out(
    repo: Repo, out: Path
) -> None:
    begin(repo)
    branch(repo, "new", {"shared.txt": "new\n"})
    repo.git("checkout", "-q", "main")
    repo.write("shared.txt", "local\n")
    ends = "until grep -q waits: $OUT/said; do sleep 0.05; done; gitgates land --list"
    ends += "; git checkout -q shared.txt; wait $pid"
    done = repo.ask("sh", "-c", f"gitgates land new > $OUT/said & pid=$!; {ends}")
    said = (out / "said").read_text()
    assert done.returncode == 0, said
    assert f"`new`: the landing waits: {repo.path}: local changes of shared.txt\n" in said
    assert b"new \xe2\x86\x92 main  %b: local" % bytes(repo.path) in done.stdout
    assert (repo.path / "shared.txt").read_text() == "new\n"
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_exactly_that_commit_is_pushed_and_tested_again_where_the_remote_moved(
    repo: Repo, out: Path, tmp_path: Path
) -> None:
    moves = "if mkdir $OUT/moved; then sh $OUT/move; fi; echo run"  # while the gate runs first
    begin(repo, CONFIG.replace("echo run", moves) + "[land]\npush = true\n")
    repo.add_origin()
    branch(repo, "mine", {"mine.txt": ""})
    other = Repo(tmp_path / "other")
    repo.git("clone", "-q", "../origin.git", str(other.path))
    other.write("theirs.txt", "")
    other.git("add", ".")
    other.git("commit", "-qm", "theirs")
    (out / "move").write_text(f"git -C {other.path} push -q origin main")
    status, rows = land(repo, "mine")
    assert (status, runs(out)) == (0, 2)
    assert first_parents(repo) == ["Merge branch 'mine'", "theirs", "base"]
    assert repo.git("ls-remote", "origin", "main").split()[0] == rows["mine"]["commit"]


def test_a_branch_that_waits_can_be_taken_out(repo: Repo) -> None:
    begin(repo)
    queue = Queue(opened(repo))
    queue.add("a", branch(repo, "a", {"a.txt": ""}), target="main", by="T <t>")
    status, rows = land(repo, "--cancel", "a")
    assert (status, rows["a"]["state"]) == (0, "cancelled")
    assert repo.gitgates("land", "--cancel", "a").returncode == 64


@pytest.mark.slow
def test_what_lands_is_signed_and_what_it_weakens_is_told(
    repo: Repo, out: Path, tmp_path: Path
) -> None:
    assert out.exists()
    more = '[hooks.Stop]\ngates = ["review"]\n[proof]\npush = true\n'
    begin(repo, CONFIG + more)
    sign_with(repo, make_key(tmp_path / "key"))
    branch(repo, "weak", {"a.py": "import os  # " + "noqa\n"})
    status, rows = land(repo, "weak")
    assert (status, rows["weak"]["weakened"]) == (0, "a.py: warning suppressed")
    assert "Weakens: a.py: " in repo.git("notes", "--ref=gitgates-land", "show", "main")
    tree = repo.git("rev-parse", "main^{tree}")
    assert '"payload"' in repo.git("notes", "--ref=gitgates", "show", tree)


def test_a_change_that_weakens_the_checks_lands_once_it_is_reviewed(repo: Repo, out: Path) -> None:
    begin(repo, CONFIG + '[hooks.Stop]\ngates = ["review"]\n[review]\nweakened = "block"\n')
    agent = Agent(repo, "s1")
    agent.start()
    agent.prompt()
    agent.edit("a.py", "import os  # " + "noqa\n")
    repo.git("checkout", "-q", "-b", "weak")
    repo.commit_all("weaken")
    repo.git("checkout", "-q", "main")
    repo.write("more.txt", "")
    repo.commit_all("more")
    repo.git("checkout", "-q", "weak")
    why = "it weakens the checks, and was not reviewed: a.py: warning suppressed"
    assert why in repo.gitgates("land", "--dry-run").stdout.decode()
    status, rows = land(repo)
    assert (status, rows["weak"]["why"], runs(out)) == (1, why, 0)
    assert "gitgates review status" in rows["weak"]["feedback"]
    assert repo.gitgates("review", "skip", "--reason", "needed").returncode == 0
    status, rows = land(repo)
    assert (status, rows["weak"]["weakened"]) == (0, "a.py: warning suppressed")


def test_the_independent_review_that_is_required_is_asked_for(repo: Repo, out: Path) -> None:
    begin(repo, CONFIG + '[hooks.Stop]\ngates = ["review"]\n[review]\nmode = "require"\n')
    branch(repo, "big", {"a.py": "x = 1\n"})
    status, rows = land(repo, "big")
    why = "the reviewer has not posted COMPLETE of this change"
    assert (status, rows["big"]["why"], runs(out)) == (1, why, 0)
    state = {"tree": repo.git("rev-parse", "big^{tree}"), "head": "", "patch": "", "agent": "r"}
    journal = session_journal(f"{repo.path}/.git/gitgates", "s1")
    for decision, expected in (("COMPLETE", 0), ("ISSUES", 1)):
        journal.append(
            {"what": "decision", "decision": decision, "counts": True, "message": "m", **state}
        )
        repo.git("update-ref", "refs/heads/main", "elsewhere")
        assert land(repo, "big")[0] == expected
