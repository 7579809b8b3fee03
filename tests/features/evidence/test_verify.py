"""Which commits have passed their gates: real commits of each kind, and `gitgates verify`."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest
from conftest import Repo
from verify_support import CONFIG, ID, PUSH, append, change, gate, notes, verified

from gitgates.features.evidence import commit_evidence
from gitgates.features.evidence.verification import verify
from gitgates.git.commits import patch_digests
from gitgates.git.repo import Git, find_repo
from gitgates.store.proofs import Proof
from gitgates.store.proofs import append as append_proofs


@pytest.fixture
def gated(repo: Repo) -> Repo:
    gate(repo)
    return repo


@pytest.mark.slow
def test_each_way_to_commit_is_evidence(gated: Repo) -> None:
    change(gated, "plain", "-q")
    append(gated, "b = 1\n")
    gated.git("commit", "-qam", "all")
    append(gated, "c = 1\n")
    gated.write("b.py", "b = 1\n")
    gated.git("add", "b.py")
    gated.git("commit", "-qm", "path", "--", "a.py")
    gated.git("commit", "-qm", "rest")
    change(gated, "amend", "-q")
    append(gated, "d = 1\n")
    gated.git("commit", "-q", "--amend", "--no-edit", "-a")
    gated.git("commit", "-q", "--allow-empty", "-m", "empty")
    subjects = ("plain", "all", "path", "rest", "amend", "empty")
    assert verified(gated) == [f"gated {subject}" for subject in subjects]


def test_what_bypassed_the_gates_is_named(gated: Repo) -> None:
    change(gated, "good")
    change(gated, "round", "--no-verify")
    gated.git("config", "core.hooksPath", "/dev/null")
    change(gated, "nohooks", "-q")  # by git, which decides which hook runs
    gated.git("config", "--unset", "core.hooksPath")
    done = gated.gitgates("verify", "base..HEAD")
    assert done.returncode == 1
    assert ID.sub("0123456", done.stdout.decode()) == (
        "0123456  gated                        good\n"
        "0123456  bypassed the gates: py, all  round\n"
        "0123456  bypassed the gates: py, all  nohooks\n"
        "next: gitgates verify --run-missing\n"
    )


def test_a_configuration_behind_a_link_is_read_in_the_commit(gated: Repo) -> None:
    settings = gated.path / "pyproject.toml"
    settings.rename(gated.path / "shared.toml")
    settings.symlink_to("shared.toml")
    gated.git("add", ".")
    gated.git("commit", "-qm", "link")
    settings.unlink()
    settings.symlink_to("../shared.toml")
    gated.git("add", ".")
    gated.git("commit", "-qm", "elsewhere", "--no-verify")
    link, elsewhere = verified(gated)
    assert link == "gated link"
    assert elsewhere.startswith(
        "bypassed the gates: pyproject.toml: is a symbolic link to `../shared.toml`, which is not a"
    )


def test_switched_off_is_no_evidence_and_a_skip_is_one(
    gated: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_SKIP", "py")
    change(gated, "skipping")
    monkeypatch.setenv("GITGATES_SKIP", "")
    monkeypatch.setenv("GITGATES", "0")
    change(gated, "off", "-q")  # by git, whose shim heeds this
    monkeypatch.delenv("GITGATES")
    assert verified(gated) == ["skipped: py skipping", "bypassed the gates: py, all off"]
    strict = ["bypassed the gates: py skipping", "bypassed the gates: py, all off"]
    assert verified(gated, "--strict") == strict


def test_nothing_to_check_needs_no_evidence(gated: Repo) -> None:
    gated.config(CONFIG.replace(', "all"', ""))
    gated.commit_all("config")
    change(gated, "docs", "--no-verify", name="README")
    change(gated, "code", "--no-verify")
    expected = ["nothing to check config", "nothing to check docs", "bypassed the gates: py code"]
    assert verified(gated) == expected


def test_commits_before_the_gates_need_none(repo: Repo) -> None:
    repo.write("a.py", "bad\n")
    repo.commit_all("old")
    repo.git("tag", "base")
    repo.write("a.py", "bad too\n")
    repo.commit_all("older")
    repo.config(CONFIG)
    repo.commit_all("adopted")
    assert verified(repo) == ["nothing to check older", "bypassed the gates: all adopted"]


@pytest.mark.slow
def test_an_amend_does_not_hide_what_it_amends(gated: Repo) -> None:
    change(gated, "first", "--no-verify", text="bad\n")
    append(gated, "x\n", "README")
    gated.git("add", "README")
    gated.git("commit", "-q", "--amend", "--no-edit")
    assert verified(gated) == ["bypassed the gates: py first"]


def test_an_amend_of_what_no_gate_is_about_is_checked(gated: Repo) -> None:
    change(gated, "first", name="README")
    append(gated, "b = 1\n")
    gated.git("commit", "-qa", "--amend", "--no-edit")
    append(gated, "more\n", "README")
    gated.git("commit", "-qa", "--amend", "--no-edit")
    assert verified(gated) == ["gated first"]


@pytest.mark.thorough
@pytest.mark.slow
def test_a_long_history_is_walked(gated: Repo) -> None:
    ident = "committer A <a@example.invalid> 1700000000 +0000"
    made = "".join(
        f"commit refs/heads/main\n{ident}\ndata 1\n{number % 10}\n"
        + ("from refs/heads/main^0\n" if not number else "")
        + f"M 100644 inline f{number}.py\ndata 0\n"
        for number in range(1100)
    )
    gated.ask("git", "fast-import", "--quiet", stdin=made.encode())
    pairs = gated.git("log", "--format=%T %P", "base..HEAD").splitlines()
    shutil.rmtree(gated.path / ".git/gitgates/proofs")  # of the commit base
    passed = Proof("py", "", "passed", 1_700_000_000.0, hook="pre-commit", config="x")
    for tree, *parent in map(str.split, pairs):
        proof = passed._replace(content=tree, base="".join(parent))
        append_proofs(f"{gated.path}/.git/gitgates", [proof])
    made = gated.git("commit-tree", "HEAD^{tree}", "-p", "base", "-m", "all")
    gated.git("reset", "-q", "--hard", made)
    assert verified(gated) == ["bypassed the gates: all all"]
    made = gated.git("commit-tree", "HEAD^{tree}", "-m", "unrelated")
    gated.git("reset", "-q", "--hard", made)
    assert verified(gated) == ["bypassed the gates: py, all unrelated"]


def test_a_refused_commit_is_no_evidence(gated: Repo) -> None:
    append(gated, "bad\n")
    assert gated.commit("refused", "-a").returncode == 1
    gated.git("commit", "-qam", "refused", "--no-verify")
    assert verified(gated) == ["bypassed the gates: py, all refused"]


def test_a_fixer_that_stages_is_recorded_as_committed(gated: Repo) -> None:
    fixer = "[gates.py]\ncommand = \"sed -i 's/bad/good/'\"\nwrites = true\nrestage = true\n"
    gated.config(CONFIG.replace('[gates.py]\ncommand = "! grep -n bad"\n', fixer))
    gated.commit_all("config")
    change(gated, "fixed", text="bad\n")
    assert gated.git("show", "HEAD:a.py").endswith("good")
    assert verified(gated) == ["gated config", "gated fixed"]


def test_the_same_content_is_gated_however_it_was_committed(gated: Repo) -> None:
    change(gated, "one")
    tree = gated.git("rev-parse", "HEAD^{tree}")
    made = gated.git("commit-tree", tree, "-p", "base", "-m", "plumbing")
    gated.git("reset", "-q", "--hard", made)
    assert verified(gated) == ["gated plumbing"]


@pytest.mark.slow
def test_a_rebase_of_gated_commits_is_no_bypass(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "one")
    change(gated, "two")
    gated.git("checkout", "-q", "main")
    gated.write("a.py", "top = 1\n" + (gated.path / "a.py").read_text())
    gated.git("commit", "-qam", "main")
    gated.git("checkout", "-q", "topic")
    gated.git("rebase", "-q", "main")
    elsewhere = ["gated on another base one", "gated on another base two"]
    assert verified(gated) == ["gated main", *elsewhere]
    rerun = ["bypassed the gates: py, all one", "bypassed the gates: py, all two"]
    assert verified(gated, "--strict") == ["gated main", *rerun]
    append(gated, "three = 1\n")
    gated.git("commit", "-qa", "--amend", "--no-edit")
    assert verified(gated) == ["gated main", *elsewhere]


def test_git_is_asked_once_for_the_patches_of_many_commits(
    gated: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated.git("checkout", "-qb", "topic")
    for subject in ("one", "two", "three"):
        change(gated, subject)
    gated.git("checkout", "-q", "main")
    change(gated, "main", name="other.txt")
    gated.git("checkout", "-q", "topic")
    gated.git("rebase", "-q", "main")
    asked: list[int] = []

    def digests(git: Git, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        asked.append(len(pairs))
        return patch_digests(git, pairs)

    monkeypatch.setattr(commit_evidence, "patch_digests", digests)
    found = verify(find_repo(str(gated.path), {**os.environ}), ("main..topic",), print)
    assert {end for one in found for end in one.gates.values()} == {"gated on another base"}
    assert asked == [5, 3]  # those that are new, and those of the range


def test_a_cherry_pick_and_a_revert(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "wanted", text="wanted\n", name="w.py")
    gated.git("checkout", "-q", "main")
    change(gated, "main")
    gated.git("cherry-pick", "topic")
    gated.git("revert", "--no-edit", "HEAD")
    assert verified(gated) == [
        "gated main",
        "gated on another base wanted",
        'gated Revert "wanted"',
    ]


def test_a_patch_with_other_white_space_is_another(gated: Repo) -> None:
    change(gated, "indented", text="if a:\n    b = 1\n")
    gated.write("a.py", (gated.path / "a.py").read_text().replace("    b", "b"))
    gated.git("commit", "-qa", "--amend", "--no-edit", "--no-verify")
    assert verified(gated) == ["bypassed the gates: py, all indented"]


def test_a_binary_file_is_known_by_its_content(gated: Repo) -> None:
    gated.write("x.py", b"\0one")
    gated.commit_all("binary")
    gated.write("x.py", b"\0two")
    gated.git("commit", "-qa", "--amend", "--no-edit", "--no-verify")
    assert verified(gated) == ["bypassed the gates: py, all binary"]


def test_a_squash_and_a_split_on_the_same_base(gated: Repo) -> None:
    change(gated, "one")
    change(gated, "two")
    gated.git("reset", "-q", "--soft", "base")
    gated.git("commit", "-qm", "squashed", "--no-verify")
    assert verified(gated) == ["gated squashed"]


def merge(repo: Repo, *args: str) -> None:
    repo.git("checkout", "-qb", "side")
    change(repo, "side", name="side.py")
    change(repo, "more", name="side.py")
    repo.git("checkout", "-q", "main")
    change(repo, "main")
    repo.git("merge", "-q", "side", "-m", "merged", *args)


@pytest.mark.slow
def test_a_merge_runs_what_is_about_no_path(gated: Repo) -> None:
    merge(gated)
    expected = ["gated main", "gated merged", "gated more", "gated side"]
    assert sorted(verified(gated)) == expected
    found = json.loads(gated.gitgates("verify", "HEAD^!", "--format", "json").stdout)["commits"]
    assert (found[0]["hook"], found[0]["gates"]) == ("pre-merge-commit", {"all": "gated"})


@pytest.mark.slow
def test_a_merge_without_its_hook_went_round(gated: Repo) -> None:
    merge(gated, "--no-verify")
    assert verified(gated)[-1] == "bypassed the gates: all merged"
    assert gated.gitgates("verify", "HEAD^!", "--run-missing").returncode == 0
    assert verified(gated)[-1] == "gated merged"


def test_a_conflict_that_was_resolved_is_checked(gated: Repo) -> None:
    gated.git("checkout", "-qb", "side")
    change(gated, "side")
    gated.git("checkout", "-q", "main")
    change(gated, "main")
    gated.ask("git", "merge", "side")
    gated.write("a.py", "resolved = 1\n")
    gated.git("commit", "-qam", "merged")
    assert sorted(verified(gated)) == ["gated main", "gated merged", "gated side"]


@pytest.mark.slow
def test_linked_worktrees_share_their_evidence(gated: Repo) -> None:
    gated.git("worktree", "add", "-q", "../linked", "-b", "topic")
    linked = Repo(gated.path.parent / "linked")
    change(linked, "linked")
    change(linked, "round", "--no-verify")
    append(linked, "c = 1\n")
    linked.git("commit", "-qm", "path", "--", "a.py")
    expected = ["gated linked", "bypassed the gates: py, all round", "gated path"]
    assert verified(linked) == expected
    gated.git("merge", "-q", "topic")
    assert verified(gated) == expected


@pytest.mark.slow
def test_a_commit_without_what_gates_need_does_not_keep_others_from_being_run(gated: Repo) -> None:
    config = gated.path.joinpath("pyproject.toml").read_text()
    gone = config.replace("command = ", "command = 'nonesuch' # ")
    for name, gates, command in (
        ("old", config, "exit 4"),
        ("gone", gone, "true"),
        ("new", config, "true"),
    ):
        gated.write("pyproject.toml", f'{gates}[tool.gitgates.worktree]\nsetup = "{command}"\n')
        gated.git("add", "pyproject.toml")
        change(gated, name, "--no-verify")
    done = gated.gitgates("verify", "base..HEAD", "--run-missing")
    assert done.returncode == 1
    assert b"`exit 4`, `setup` of [tool.gitgates.worktree], failed with" in done.stderr
    states = [line.split(maxsplit=1)[1] for line in done.stdout.decode().splitlines()[-3:]]
    assert states == [
        "could not run: py, all  old",
        "could not run: py, all  gone",
        "gated                   new",
    ]
    missing = "bypassed the gates: py, all"
    assert verified(gated) == [f"{missing} old", f"{missing} gone", "gated new"]


@pytest.mark.slow
def test_what_a_checkout_lacks_is_said_once(gated: Repo) -> None:
    gated.path.joinpath(".git/info/exclude").write_text("deps/\n")
    gated.write("deps/lib.py", "")
    for name in ("one", "two"):
        change(gated, name, "--no-verify", text="bad\n")
    done = gated.gitgates("verify", "base..HEAD", "--run-missing")
    said = done.stderr.decode().splitlines()
    assert len(said) == 2
    assert said[0].endswith("lack what git ignores in the working tree: deps/")
    assert said[1].endswith(
        '[tool.gitgates.worktree] setup = "the command that installs it" in pyproject.toml'
    )


@pytest.mark.slow
def test_run_missing_runs_it_on_exactly_that_commit(gated: Repo) -> None:
    change(gated, "bad", "--no-verify", text="bad\n")
    change(gated, "mended", "--no-verify", text="")
    gated.write("a.py", "good = 1\n")
    gated.git("commit", "-qam", "good", "--no-verify")
    gated.write("a.py", "bad, and not committed\n")
    done = gated.gitgates("verify", "base..HEAD", "--run-missing")
    assert (done.returncode, done.stderr) == (1, b"")
    said = re.sub(r"\d\.\d\d s", "0.00 s", ID.sub("0123456", done.stdout.decode()))
    assert said == (
        "gitgates: 0123456 bad: running py, all\n"
        "py   failed         0.00 s  exit status 1\n"
        "  | 31:bad\n"
        "all  not run      the run ended at `py`\n"
        "gitgates pre-commit: blocked by `py`\n"
        "gitgates: 0123456 mended: running py, all\n"
        "py   failed         0.00 s  exit status 1\n"
        "  | 31:bad\n"
        "all  not run      the run ended at `py`\n"
        "gitgates pre-commit: blocked by `py`\n"
        "gitgates: 0123456 good: running py, all\n"
        "py   passed         0.00 s\n"
        "all  passed         0.00 s\n"
        "gitgates pre-commit: 2 gates passed\n"
        "0123456  failed: py, all  bad\n"
        "0123456  failed: py, all  mended\n"
        "0123456  gated            good\n"
    )
    again = ["bypassed the gates: py, all bad", "bypassed the gates: py, all mended"]
    assert verified(gated) == [*again, "gated good"]
    assert (gated.path / "a.py").read_text() == "bad, and not committed\n"


def test_a_configuration_that_cannot_be_read_is_said(gated: Repo) -> None:
    gated.config(CONFIG.replace("command", "comand"))
    gated.git("commit", "-qam", "broken", "--no-verify")
    said = verified(gated)
    where = "pyproject.toml: tool.gitgates.gates.py.comand: unknown key"
    assert len(said) == 1
    assert said[0].startswith(f"bypassed the gates: {where}")


def test_what_is_no_range(gated: Repo) -> None:
    for text in ("nonsense", "--all", "base..nonsense", "", "HEAD:a.py", "HEAD^{tree}"):
        done = gated.gitgates("verify", "--", text)
        said = f"gitgates: `{text}` is not a range of commits\n  For example: origin/main..HEAD\n"
        assert (done.returncode, done.stderr.decode()) == (64, said)


@pytest.mark.slow
def test_without_a_range_it_is_what_is_not_pushed(gated: Repo) -> None:
    gated.add_origin()
    assert gated.gitgates("verify").stdout == b"no unpushed commits to verify\n"
    gated.git("checkout", "-qb", "topic")
    change(gated, "one")
    assert gated.gitgates("verify").stdout.split()[1:] == [b"gated", b"one"]
    gated.git("config", "branch.topic.remote", ".")
    gated.git("config", "branch.topic.merge", "refs/heads/main")
    change(gated, "two")
    lines = gated.gitgates("verify").stdout.decode().splitlines()
    assert [line.split()[1:] for line in lines] == [["gated", "one"], ["gated", "two"]]


def test_an_empty_repository_has_nothing_to_verify(repo: Repo) -> None:
    assert repo.gitgates("verify").stdout == b"no unpushed commits to verify\n"


@pytest.fixture
def pushing(gated: Repo) -> Repo:
    """A repository that verifies what it pushes; main already exists."""
    gated.config(CONFIG + PUSH)
    gated.commit_all("config")
    gated.add_origin()
    gated.git("tag", "-f", "base")
    gated.shim("pre-push")
    return gated


@pytest.mark.slow
def test_a_push_runs_what_is_missing_on_exactly_those_commits(pushing: Repo) -> None:
    change(pushing, "one")
    change(pushing, "round", "--no-verify")
    pushing.write("untracked.py", "bad\n")
    done = pushing.ask("git", "push", "-q", "origin", "main")
    assert done.returncode == 0
    said = re.sub(r"\d\.\d\d s", "0.00 s", ID.sub("0123456", done.stderr.decode()))
    assert said == (
        "gitgates: 0123456 round: running py, all\n"
        "py   passed         0.00 s\n"
        "all  passed         0.00 s\n"
    )
    assert verified(pushing) == ["gated one", "gated round"]


@pytest.mark.slow
def test_a_push_with_a_commit_that_does_not_pass_is_refused(pushing: Repo) -> None:
    change(pushing, "round", "--no-verify", text="bad\n")
    pushing.write("a.py", "mended = 1\n")
    pushing.git("commit", "-qam", "mended")
    done = pushing.ask("git", "push", "-q", "origin", "main")
    assert done.returncode == 1
    said = re.sub(r"\d\.\d\d s", "0.00 s", ID.sub("0123456", done.stderr.decode()))
    assert said.partition("results:")[0].partition("error:")[0] == (
        "gitgates: 0123456 round: running py, all\n"
        "py   failed         0.00 s  exit status 1\n"
        "  | 31:bad\n"
        "all  not run      the run ended at `py`\n"
        "gitgates: 0123456 round: not pushed\n"
        "gitgates pre-commit: blocked by `py`\n"
        "gitgates: to see more: gitgates runs show latest; "
        "to skip this once: git push --no-verify\n"
    )
    assert pushing.git("rev-parse", "origin/main") == pushing.git("rev-parse", "base")


@pytest.mark.slow
def test_what_another_remote_has_is_verified_for_this_one(pushing: Repo) -> None:
    pushing.git("init", "-q", "--bare", "../mirror.git")
    pushing.git("remote", "add", "mirror", "../mirror.git")
    change(pushing, "round", "--no-verify", text="bad\n")
    pushing.git("push", "-q", "--no-verify", "mirror", "main")
    assert pushing.ask("git", "push", "-q", "origin", "main").returncode == 1
    assert pushing.git("push", "-q", "mirror", "main:other") == ""


@pytest.mark.slow
def test_a_push_that_brings_no_commit_is_not_verified(pushing: Repo) -> None:
    pushing.git("push", "-q", "origin", "main:other")
    pushing.git("push", "-q", "origin", ":other")
    pushing.git("tag", "blob", "HEAD:a.py")
    pushing.git("push", "-q", "origin", "blob")
    change(pushing, "round", "--no-verify", text="bad\n")
    pushing.git("notes", "--ref", "gitgates", "add", "-m", "x", "HEAD^{tree}")
    pushing.git("push", "-q", "origin", "refs/notes/gitgates")
    pushing.git("push", "-q", "origin", "refs/notes/gitgates:refs/notes/x", "blob:refs/tags/two")


def test_only_where_it_is_asked_for_a_hook_is_installed(repo: Repo) -> None:
    repo.config(CONFIG)
    hooks = repo.path / ".git/hooks"
    repo.gitgates("install-hooks")
    assert sorted(path.name for path in hooks.iterdir()) == ["pre-commit", "pre-merge-commit"]
    repo.config(CONFIG + PUSH)
    repo.gitgates("install-hooks")
    assert (hooks / "pre-push").exists()


@pytest.mark.slow
def test_a_clone_believes_no_unsigned_notes(pushing: Repo) -> None:
    change(pushing, "one")
    tree = pushing.git("rev-parse", "HEAD^{tree}")
    base = pushing.git("rev-parse", "base^{tree}")
    line = {"base": base, "config": "x", "gates": {"py": "passed", "all": "passed"}, "v": 1}
    text = json.dumps({**line, "hook": "pre-commit", "patch": "", "time": 1_700_000_000})
    pushing.git("notes", "--ref", "gitgates", "add", "-m", text, tree)  # as 0.1 has written it
    pushing.git("push", "-q", "origin", "main", "refs/notes/gitgates")
    clone = Repo(pushing.path.parent / "clone")
    pushing.git("clone", "-q", "../origin.git", str(clone.path))
    clone.git("fetch", "-q", "origin", "refs/notes/gitgates:refs/notes/gitgates")
    clone.git("tag", "base", pushing.git("rev-parse", "base"))
    assert verified(clone) == ["bypassed the gates: py, all one"]
    ran = clone.gitgates("verify", "base..HEAD", "--run-missing")
    assert (ran.returncode, ran.stdout.count(b": running ")) == (0, 1)
    assert verified(clone) == ["gated one"]
    assert notes(clone) == {tree: [text]}


def test_an_amend_that_checks_its_own_paths_does_not_hide_those_of_before(gated: Repo) -> None:
    change(gated, "first", "--no-verify", text="bad\n")
    gated.write("b.py", "b = 1\n")
    gated.git("add", "b.py")
    gated.git("commit", "-q", "--amend", "--no-edit")  # the gate runs, on b.py alone
    assert verified(gated) == ["bypassed the gates: py first"]


def test_a_gate_that_looked_at_no_step_of_an_amend_is_missing(gated: Repo) -> None:
    gated.config(CONFIG.replace("*.py", "*.txt"))
    gated.git("commit", "-qam", "other paths", "--no-verify")
    gated.git("tag", "-f", "base")
    change(gated, "first", text="bad\n")  # no path of it matches
    gated.config(CONFIG)
    gated.git("commit", "-qa", "--amend", "--no-edit")  # nor one of what this adds
    assert verified(gated) == ["bypassed the gates: py first"]


def test_a_failure_that_does_not_block_is_no_pass(gated: Repo) -> None:
    gate = "command = '! grep -n bad'\npass_files = true\nfiles = ['*.py']\n"
    weak = f"[gates.weak]\n{gate}on_fail = 'CONTINUE'\n"
    trial = f"[gates.trial]\n{gate}observe = true\n"
    gated.config(f"{weak}{trial}[hooks.pre-commit]\ngates = ['weak', 'trial']\n")
    gated.commit_all("configure", no_verify=True)
    gated.git("tag", "-f", "base")
    change(gated, "fine")
    change(gated, "bad", text="bad\n", name="b.py")
    change(gated, "other", name="other")
    gated.write("more", "x")
    gated.git("add", "more")
    gated.git("commit", "-q", "--amend", "--no-edit")
    expected = ["gated fine", "let pass: weak, trial bad", "nothing to check other"]
    assert verified(gated) == verified(gated, "--strict") == expected
    # The same patch elsewhere is no pass either, and neither is an amend that leaves it.
    gated.git("checkout", "-qb", "picked", "base")
    change(gated, "before", name="README")
    gated.git("cherry-pick", "main~1")
    change(gated, "round", "--no-verify")
    assert verified(gated)[1:] == [
        "let pass: weak, trial bad",
        "bypassed the gates: weak, trial round",
    ]


def test_a_client_that_names_no_index_has_run_the_gates(gated: Repo) -> None:
    append(gated, "client = 1\n")
    gated.git("add", "a.py")
    hook = gated.ask(str(gated.path / ".git/hooks/pre-commit"))
    assert hook.returncode == 0
    tree, parent = gated.git("write-tree"), gated.head()
    made = gated.git("commit-tree", "-m", "client", "-p", parent, tree)
    gated.git("update-ref", "refs/heads/main", made)
    assert verified(gated) == ["gated client"]
