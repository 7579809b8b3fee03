"""Passes are reused for the same content, and for no other: real git, real gates, counted runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from reuse_support import BY_FILE, PROBE, WHOLE, Checker

from gitgates.core.types import Gate
from gitgates.engine.visible_content import VisibleContent
from gitgates.git.checkout import check_out
from gitgates.git.repo import find_repo
from gitgates.store.proofs import durations


@pytest.fixture(name="at")
def _at(repo: Repo, out: Path) -> Checker:
    repo.write("a.txt", "one\n")
    repo.write("sub/b.txt", "two\n")
    repo.write("tool.sh", "#!/bin/sh\n").chmod(0o755)
    (repo.path / "link").symlink_to("a.txt")
    repo.write(".gitignore", "*.log\n")
    repo.commit_all("first")
    return Checker(repo, out)


def ran(at: Checker, gate: Gate = WHOLE, **options: Any) -> int:
    """Run a gate that passes; return how many times it really ran."""
    (result,) = at.run(gate, **options)
    assert result.status == "passed"
    runs = len(at.log())
    assert bool(result.reused) is (runs == 0)
    return runs


def proven(at: Checker, gate: Gate = WHOLE, **options: Any) -> None:
    """Run a gate until its pass is reused."""
    assert [ran(at, gate, **options) for _ in range(2)] == [1, 0]


def test_the_same_content(at: Checker) -> None:
    proven(at)
    (result,) = at.run(WHOLE)
    assert result.reused == "manual, 0 s ago"
    assert result.duration_s == 0


EDITS = {
    "edit": "echo 1st > a.txt",  # of the same size
    "mode": "chmod +x a.txt",
    "link to file": "rm link; printf a.txt > link",
    "deletion": "rm a.txt",
    "ignoring less": "echo > .gitignore",
    "excludes": "echo '*.tmp' > .git/info/exclude",
    "staged and edited": "echo x > a.txt; git add .; echo y > a.txt",
    "edit of an untracked file": "echo 1 > untracked",
    "rename": "mv a.txt c.txt",
    "rename by git": "git mv a.txt c.txt",
    "mode back": "chmod -x tool.sh",
    "link": "ln -sfn tool.sh link",
    "deletion by git": "git rm -q a.txt",
    "new file": "touch new",
}


@pytest.mark.samples(7)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_other_content(at: Checker, edit: str) -> None:
    at.repo.write("untracked", "0\n")
    proven(at)
    assert at.repo.ask("sh", "-c", edit).returncode == 0
    proven(at)


def test_what_git_knows_is_no_content(at: Checker) -> None:
    at.repo.write("a.txt", "staged\n")
    at.repo.write("new", "")
    proven(at)
    at.repo.git("add", "-A")
    assert ran(at) == 0
    at.repo.commit_all("second")
    assert ran(at) == 0
    at.repo.git("switch", "-qc", "other")
    at.repo.write("x.log", "ignored")
    (at.repo.path / "a.txt").touch()
    assert ran(at) == 0
    at.repo.git("checkout", "-q", "HEAD~")
    assert ran(at) == 1
    at.repo.git("checkout", "-q", "other")
    assert ran(at) == 0


OTHERS = {
    "argument": WHOLE._replace(command="probe x"),
    "folder": WHOLE._replace(working_dir="sub"),
    "list": WHOLE._replace(command=("probe",)),
    "env": WHOLE._replace(env=(("A", "b"),)),
    "name": WHOLE._replace(name="other"),
    "writes": WHOLE._replace(writes=True),
    "index": WHOLE._replace(git_env="clean"),
}


def test_another_definition(at: Checker) -> None:
    proven(at)
    for name, other in OTHERS.items():
        assert [ran(at, other) for _ in range(2)] == [1, 0], name
    assert ran(at) == 0


def test_variables(at: Checker) -> None:
    gate = WHOLE._replace(env_inputs=("ONE", "TWO_*"))
    proven(at, gate)
    assert ran(at, gate, OTHER="x", ONEX="x", TWO="x") == 0
    proven(at, gate, ONE="")
    proven(at, gate, ONE="1")
    proven(at, gate, TWO_A="1")
    proven(at, gate, TWO_B="1")
    proven(at, gate, PYTHONPATH="x")
    proven(at, gate, PYTEST_ADDOPTS="-k one")
    proven(at, gate, MAKEFLAGS="k")
    assert ran(at, gate, MAKEFLAGS="") == 0  # as in a recipe of make
    assert ran(at, gate, MAKEFLAGS="w --no-print-directory") == 0
    assert ran(at, gate) == 0


def test_hooks_that_a_person_skips(at: Checker) -> None:
    gate = WHOLE._replace(command="probe pre-commit")
    proven(at, gate)
    proven(at, gate, SKIP="mypy")
    proven(at, gate, PREK_SKIP="mypy")
    assert ran(at, gate) == 0
    proven(at)
    assert ran(at, SKIP="mypy") == 0  # no hooks of the framework


def test_variables_that_the_command_names(at: Checker) -> None:
    gate = WHOLE._replace(command='probe "$ONE" ${TWO:-x}')
    proven(at, gate)
    proven(at, gate, ONE="1")
    proven(at, gate, TWO="2")
    assert ran(at, gate, OTHER="x") == 0


def test_configuration_in_another_folder_of_the_user(at: Checker, tmp_path: Path) -> None:
    gate = WHOLE._replace(reads=("~/.config/tool.toml",))
    place = tmp_path / "settings/tool.toml"
    place.parent.mkdir()
    place.write_text("one")
    proven(at, gate, XDG_CONFIG_HOME=str(place.parent))
    place.write_text("other")
    proven(at, gate, XDG_CONFIG_HOME=str(place.parent))


def test_a_link_in_a_folder_that_is_read(at: Checker, tmp_path: Path) -> None:
    gate = WHOLE._replace(reads=(f"{tmp_path}/rules",))
    for name in ("old", "new"):
        (tmp_path / "rules" / name).mkdir(parents=True)
    for name in ("old", "new"):
        (tmp_path / "rules/now").unlink(missing_ok=True)
        (tmp_path / "rules/now").symlink_to(name)
        proven(at, gate)


def test_passed_paths_and_inputs(at: Checker) -> None:
    gate = WHOLE._replace(inputs=("sub/",), pass_files=True, files=("*.txt",))
    options = {"paths": ("a.txt",)}
    proven(at, gate, **options)
    at.repo.write("other", "")
    assert ran(at, gate, **options) == 0  # neither passed nor one of `inputs`
    at.repo.write("a.txt", "1st\n")
    proven(at, gate, **options)
    at.repo.write("sub/b.txt", "2nd\n")
    proven(at, gate, **options)
    (at.repo.path / "sub/b.txt").chmod(0o755)
    proven(at, gate, **options)
    proven(at, gate, paths=("a.txt", "sub/b.txt"))


def test_a_pattern_of_inputs_that_matches_nothing(at: Checker) -> None:
    gate = WHOLE._replace(inputs=("a.txt", "subb/"))
    assert [ran(at, gate) for _ in range(2)] == [1, 1]
    assert (
        at.messages.texts
        == ["the pass of whole cannot be reused: no file matches `subb/` of `inputs`"] * 2
    )
    at.repo.write("subb/c.txt", "1st\n")
    proven(at, gate)
    nothing = WHOLE._replace(inputs=("!subb/",))
    assert [ran(at, nothing) for _ in range(2)] == [1, 1]
    assert at.messages.texts[-1].endswith("cannot be reused: no file matches `inputs`")


def test_a_script_of_the_repository_that_is_no_input(at: Checker) -> None:
    script = at.repo.write("check", PROBE.replace("BAD", "[B]AD"))
    script.chmod(0o755)
    gate = WHOLE._replace(command="./check", inputs=("sub/",))
    proven(at, gate)
    script.touch()
    assert ran(at, gate) == 0
    script.write_text(f"{script.read_text()}# another\n")
    proven(at, gate)


def test_a_path_that_git_ignores_may_have_any_content(at: Checker) -> None:
    gate = WHOLE._replace(pass_files=True, files=("*",))
    at.repo.write("x.log", "1")
    assert [ran(at, gate, paths=("x.log",)) for _ in range(2)] == [1, 1]


def test_failures_are_never_reused(at: Checker) -> None:
    at.repo.write("a.txt", "BAD")
    for _ in range(2):
        assert [result.status for result in at.run(WHOLE)] == ["failed"]
        assert len(at.log()) == 1
    at.repo.write("a.txt", "one\n")
    proven(at)


def test_gates_that_change_files_are_never_reused(at: Checker) -> None:
    fix = f"{PROBE}echo $$ > a.txt\n"
    at.tool("probe", fix)
    for gate in (WHOLE, WHOLE._replace(writes=True)):
        assert [ran(at, gate) for _ in range(2)] == [1, 1]


def test_a_fixer_is_reused_once_nothing_is_left_to_fix(at: Checker) -> None:
    at.tool("probe", f"{PROBE}grep -q fixed a.txt || echo fixed > a.txt\n")
    assert [ran(at, WHOLE._replace(writes=True)) for _ in range(3)] == [1, 1, 0]


MEANWHILE = {
    "other content and back": "cp sub/b.txt $OUT/b; echo BAD > sub/b.txt; cp $OUT/b sub/b.txt",
    "new": "echo $$ > new",
    "the tool in place": 'printf "#" >> "$BIN/probe"',
    "other content": "echo else > sub/b.txt",
    "renamed back": "mv sub/b.txt c; mv c sub/b.txt; touch sub/b.txt",
    "staged and back": "echo x > sub/b.txt; git add .; git checkout HEAD sub/b.txt",
    "mode": "chmod +x a.txt",
    "the tool": 'cp -p "$BIN/probe" "$BIN/.new"; mv "$BIN/.new" "$BIN/probe"',
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("change", MEANWHILE.values(), ids=MEANWHILE)
def test_something_changed_while_the_gate_ran(at: Checker, change: str) -> None:
    gate = WHOLE._replace(pass_env=())
    (result,) = at.run(gate, MEANWHILE=change, BIN=str(at.bin))
    assert result.status == "passed"
    assert len(at.log()) == 1
    assert ran(at, gate) == 1  # as it is now, it has not been checked


def test_max_age(at: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = WHOLE._replace(max_age_s=60.0)
    proven(at, gate)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 59)
    assert ran(at, gate) == 0
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert ran(at, gate) == 1
    monkeypatch.setattr(time, "time", lambda: now - 1)
    assert ran(at, gate) == 1  # the clock was set back
    assert ran(at) == 0  # of the same name, without a limit


def test_max_age_by_file(at: Checker) -> None:
    gate = BY_FILE._replace(max_age_s=60.0)
    proven(at, gate, paths=("a.txt",))
    at.repo.write("a.txt", "1st\n")
    proven(at, gate, paths=("a.txt",))


# What git does not see


def test_files_that_git_is_told_to_overlook(at: Checker) -> None:
    proven(at)
    for flag in ("assume-unchanged", "skip-worktree"):
        at.repo.git("update-index", f"--{flag}", "a.txt")
        assert ran(at) == 0
        at.repo.write("a.txt", f"{flag}\n")
        proven(at)
        at.repo.write("a.txt", "one\n")
        assert ran(at) == 0
        at.repo.git("update-index", f"--no-{flag}", "a.txt")


def test_sparse_checkout(at: Checker) -> None:
    proven(at)
    at.repo.git("sparse-checkout", "set", "--no-cone", "/a.txt")
    proven(at)
    at.repo.git("sparse-checkout", "disable")
    assert ran(at) == 0


def test_modes_and_links_that_git_is_told_to_ignore(at: Checker) -> None:
    at.repo.git("config", "core.fileMode", "false")
    proven(at)
    (at.repo.path / "a.txt").chmod(0o755)
    proven(at)
    at.repo.git("config", "core.symlinks", "false")
    (at.repo.path / "link").unlink()
    at.repo.write("link", "a.txt")
    proven(at)


ATTRIBUTES = {
    "autocrlf": "",
    "text": "* text=auto\n",
    "ident": "*.txt ident\n",
    "filter": "*.txt filter=swap\n",
}


def _convert(repo: Repo, kind: str) -> None:
    if kind == "autocrlf":
        repo.git("config", "core.autocrlf", "true")
    repo.git("config", "filter.swap.clean", "tr ab ba")
    repo.git("config", "filter.swap.smudge", "tr ab ba")
    repo.git("config", "core.safecrlf", "false")
    repo.write(".gitattributes", ATTRIBUTES[kind])
    repo.write("a.txt", "a\nb\n$Id$\n")
    repo.git("add", ".")


SAME_BLOB = {
    "autocrlf": ("a\r\nb\n$Id$\n", "a\nb\r\n$Id$\n"),
    "text": ("a\r\nb\n$Id$\n", "a\nb\r\n$Id$\n"),
    "ident": ("a\nb\n$Id: 1 $\n", "a\nb\n$Id: 2 $\n"),
}


@pytest.mark.samples(1)
@pytest.mark.parametrize("kind", SAME_BLOB)
def test_other_bytes_of_one_blob(at: Checker, kind: str) -> None:
    _convert(at.repo, kind)
    proven(at)
    tree = at.repo.git("write-tree")
    for content in SAME_BLOB[kind]:
        at.repo.write("a.txt", content)
        proven(at)
        at.repo.git("add", ".")
        assert at.repo.git("write-tree") == tree
        assert ran(at) == 0
    gate = WHOLE._replace(inputs=("a.txt",))
    proven(at, gate)
    at.repo.write("a.txt", SAME_BLOB[kind][0])
    proven(at, gate)


@pytest.mark.samples(2)
@pytest.mark.parametrize("kind", ["filter", *SAME_BLOB])
def test_bytes_that_were_converted_before_it_was_switched_off(at: Checker, kind: str) -> None:
    """Git goes on trusting such a file."""
    at.repo.write("a.txt", "a\nb\n$Id$\n")
    at.repo.commit_all("plain")
    proven(at)
    at.repo.git("config", "core.autocrlf", str(kind == "autocrlf").lower())
    at.repo.git("config", "filter.swap.clean", "sed s/^.//")
    at.repo.git("config", "filter.swap.smudge", "sed s/^/x/")
    at.repo.write(".git/info/attributes", ATTRIBUTES[kind].replace("=auto", " eol=crlf"))
    (at.repo.path / "a.txt").unlink()
    at.repo.git("checkout", "a.txt")
    assert (at.repo.path / "a.txt").read_bytes() != b"a\nb\n$Id$\n"
    os.utime(at.repo.path / "a.txt", (1, 1))  # or git would compare the content
    at.repo.git("add", "a.txt")
    at.repo.write(".git/info/attributes", "")
    at.repo.git("config", "core.autocrlf", "false")
    assert at.repo.git("status", "--porcelain") == ""
    proven(at)


def test_a_file_is_hashed_once(at: Checker) -> None:
    there = find_repo(str(at.repo.path), dict(os.environ))
    with _checked_out(at) as checkout:
        time.sleep(0.1)  # what was just written is hashed again
        first = VisibleContent(there, checkout.repo)
        assert first.states["a.txt"]
        # One that nobody has looked at is between them.
        third = VisibleContent(there, checkout.repo, VisibleContent(there, checkout.repo, first))
        assert third.states["a.txt"] is first.states["a.txt"]


def test_another_filter(at: Checker) -> None:
    _convert(at.repo, "filter")
    at.repo.commit_all("filtered")
    proven(at)
    at.repo.git("config", "filter.swap.smudge", "tr ab xy")
    at.repo.git("config", "filter.swap.clean", "tr xy ab")
    (at.repo.path / "a.txt").unlink()
    at.repo.git("checkout", "a.txt")
    assert at.repo.git("status", "--porcelain") == ""
    proven(at)


def test_names_in_a_converted_tree(at: Checker) -> None:
    at.repo.git("config", "core.autocrlf", "input")
    at.repo.git("config", "core.safecrlf", "false")
    for name in ('"quoted"', "line\nfeed", "back\\slash", "ü"):
        at.repo.write(name, "x\n")
        proven(at)
        at.repo.write(name, "x\r\n")
        proven(at)


# Submodules


@pytest.fixture(name="module")
def _module(at: Checker, tmp_path: Path) -> Repo:
    """A submodule at `lib`."""
    source = Repo.init(tmp_path / "source")
    source.write("m.txt", "m\n")
    source.write("n.txt", "n\n")
    source.commit_all("first")
    at.repo.git("submodule", "--quiet", "add", str(source.path), "lib")
    at.repo.commit_all("with a submodule")
    return Repo(at.repo.path / "lib")


def test_submodule(at: Checker, module: Repo) -> None:
    proven(at)
    for gate in (WHOLE, WHOLE._replace(inputs=("lib",))):
        for number in range(2):
            module.write("m.txt", f"dirty {number} {gate.inputs}\n")
            proven(at, gate)
        module.git("checkout", "-q", "m.txt")
        module.write("untracked", f"{gate.inputs}")
        proven(at, gate)
        (module.path / "untracked").unlink()
        module.git("update-index", "--assume-unchanged", "m.txt")
        module.write("m.txt", f"unseen {gate.inputs}\n")
        proven(at, gate)
        module.git("update-index", "--no-assume-unchanged", "m.txt")
        module.commit_all("second")
        assert ran(at, gate) == 0


def test_submodule_with_other_bytes(at: Checker, module: Repo) -> None:
    module.git("config", "core.autocrlf", "input")
    module.git("config", "core.safecrlf", "false")
    proven(at)
    module.write("m.txt", "m\r\n")
    module.git("add", ".")
    assert at.repo.git("status", "--porcelain") == ""
    proven(at)


@pytest.mark.usefixtures("module")
def test_submodule_that_is_not_there(at: Checker) -> None:
    proven(at)
    at.repo.git("submodule", "--quiet", "deinit", "-f", "lib")
    assert at.repo.git("status", "--porcelain") == ""
    proven(at)
    at.repo.write("lib/new", "")  # which git does not list
    assert [ran(at) for _ in range(2)] == [1, 1]
    assert at.messages.texts[-1].endswith("`lib/` has files, but not those of the submodule")
    (at.repo.path / "lib/new").unlink()
    at.repo.git("submodule", "--quiet", "update", "--init")
    assert ran(at) == 0


def test_repository_within(at: Checker) -> None:
    Repo.init(at.repo.path / "within").write("a.txt", "1\n")
    assert [ran(at) for _ in range(2)] == [1, 1]


# Worktrees and private checkouts


def test_worktrees_share_passes(at: Checker, tmp_path: Path) -> None:
    proven(at)
    for place in ("other", "deeper/one"):
        at.repo.git("worktree", "add", "-q", "--detach", str(tmp_path / place))
        (result,) = at.run(WHOLE, root=tmp_path / place)
        assert result.reused.startswith(f"manual in {at.repo.path}, ")
    other = Repo(tmp_path / "other")
    other.write("a.txt", "1st\n")
    proven(at, root=other.path)
    assert ran(at) == 0
    at.repo.write("a.txt", "1st\n")
    assert ran(at) == 0
    assert at.log() == []


def _checked_out(at: Checker) -> Any:
    return check_out(find_repo(str(at.repo.path), dict(os.environ)), "HEAD")


def test_private_checkouts_share_passes(at: Checker) -> None:
    gate = WHOLE._replace(command="probe; ./tool.sh", reads=("../ruff.toml",))
    proven(at, gate)
    with _checked_out(at) as checkout:
        assert ran(at, gate, checkout=checkout.repo) == 0
    at.repo.write("a.txt", "1st\n")
    at.repo.commit_all("second")
    with _checked_out(at) as checkout:
        proven(at, gate, checkout=checkout.repo)
    assert ran(at, gate) == 0


@pytest.mark.samples(1)
@pytest.mark.parametrize("own", ["", ".venv"])
def test_private_checkouts_take_passes_of_the_users_environment(at: Checker, own: str) -> None:
    """`uv run` makes an environment of its own in a checkout, but none to find out that again."""
    at.tool("uv", '#!/bin/sh\nmkdir -p ${UV_PROJECT_ENVIRONMENT:-.venv}\nshift; exec "$@"\n')
    at.repo.write(".gitignore", ".venv*\n")
    at.repo.commit_all("second")
    at.repo.write(".venv/pyvenv.cfg", "")
    env: dict[str, Any] = {"UV_PROJECT_ENVIRONMENT": own} if own else {}
    gate = WHOLE._replace(command="uv run probe")
    paths = ("a.txt", "sub/b.txt")
    by_file = BY_FILE._replace(command=("uv", "run", "probe-files"))
    proven(at, gate, **env)
    proven(at, by_file, paths=paths, **env)
    link = (".venv",)
    there = find_repo(str(at.repo.path), {**os.environ})
    with check_out(there, "HEAD", link=link) as checkout:
        assert ran(at, gate, checkout=checkout.repo, **env) == 0
        assert ran(at, by_file, paths=paths, checkout=checkout.repo, **env) == 0
    record = at.repo.path / ".venv/lib/python3.11/site-packages/a.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("")
    with check_out(there, "HEAD", link=link) as checkout:
        assert ran(at, gate, checkout=checkout.repo, **env) == 1
    at.repo.write("a.txt", "BAD\n")
    at.repo.commit_all("third")
    with check_out(there, "HEAD", link=link) as checkout:
        assert at.run(gate, checkout=checkout.repo, **env)[0].status == "failed"


def test_private_checkout_that_a_gate_changed(at: Checker) -> None:
    with _checked_out(at) as checkout:
        proven(at, checkout=checkout.repo)
        new = Path(checkout.root_abs, "new")
        new.write_text("")
        proven(at, checkout=checkout.repo)
        new.unlink()
        assert ran(at, checkout=checkout.repo) == 0
        Path(checkout.root_abs, "a.txt").write_text("1st\n")
        proven(at, checkout=checkout.repo)


def test_private_checkout_below_configuration_of_the_users(at: Checker) -> None:
    """What is in the root of the user is above a private checkout."""
    gate = WHOLE._replace(reads=("../probe.toml",))
    at.repo.write("probe.toml", "uncommitted")
    with _checked_out(at) as checkout:
        proven(at, gate, checkout=checkout.repo)
    (at.repo.path / "probe.toml").unlink()
    assert ran(at, gate) == 1
    at.repo.write("probe.toml", "committed")
    at.repo.commit_all("second")
    proven(at, gate)
    with _checked_out(at) as checkout:
        assert ran(at, gate, checkout=checkout.repo) == 0


@pytest.mark.usefixtures("module")
def test_submodules_are_not_in_a_private_checkout(at: Checker) -> None:
    proven(at)
    with _checked_out(at) as checkout:
        proven(at, checkout=checkout.repo)
    assert ran(at) == 0


# By file


def passed(at: Checker, *paths: str, gate: Gate = BY_FILE) -> list[str]:
    """Return the paths that a run by file passes to the gate."""
    at.run(gate, paths=paths)
    return " ".join(at.log()).split()


def test_by_file_only_changed_files_are_passed(at: Checker) -> None:
    names = tuple(f"f{number}.txt" for number in range(5))
    for name in names:
        at.repo.write(name, f"{name}\n")
    assert passed(at, *names) == [*names]
    assert passed(at, *names) == []
    (result,) = at.run(BY_FILE, paths=names)
    assert result.reused == "5 of 5 files"
    at.repo.write("f3.txt", "f4.txt\n")
    (result,) = at.run(BY_FILE, paths=names)
    assert (result.reused, at.log()) == ("4 of 5 files", ["f3.txt"])
    (at.repo.path / "f1.txt").chmod(0o755)
    assert passed(at, *names) == ["f1.txt"]
    (at.repo.path / "f1.txt").chmod(0o644)
    assert passed(at, *names) == []
    at.repo.write("f3.txt", "f3.txt\n")
    assert passed(at, *names) == []


def test_by_file_after_a_change_of_what_all_depend_on(at: Checker) -> None:
    both = ("a.txt", "sub/b.txt")
    at.repo.write("probe.toml", "1st")
    assert passed(at, *both) == [*both]
    at.repo.write("other.md", "")  # a file that is there may be imported
    assert passed(at, *both) == [*both]
    at.repo.write("other.md", "text")
    assert passed(at, *both) == []
    at.repo.write("probe.toml", "")
    assert passed(at, *both) == [*both]
    at.repo.write("probe.toml", "x")
    assert passed(at, *both) == [*both]
    at.tool("probe-files", (at.bin / "probe-files").read_text())
    assert passed(at, *both) == [*both]
    at.run(BY_FILE, paths=both, PYTHONPATH="x")
    assert at.log() == ["a.txt sub/b.txt"]


def test_by_file_inputs_that_match_nothing(at: Checker) -> None:
    gate = BY_FILE._replace(inputs=("hedder.txt",), files=("*.txt",), exclude=("header.txt",))
    at.repo.write("header.txt", "1st\n")
    assert passed(at, "a.txt", gate=gate) == ["a.txt"]
    assert passed(at, "a.txt", gate=gate) == []
    at.repo.write("header.txt", "2nd\n")
    assert passed(at, "a.txt", gate=gate) == ["a.txt"]


def test_by_file_without_inputs_all_that_the_gate_is_not_about_counts(at: Checker) -> None:
    gate = BY_FILE._replace(inputs=(), exclude=("sub/",))
    assert passed(at, "a.txt", "sub/b.txt", gate=gate) == ["a.txt"]
    at.repo.write("sub/b.txt", "excluded")
    assert passed(at, "a.txt", gate=gate) == ["a.txt"]
    at.repo.write("tool.sh", "changed")
    assert passed(at, "a.txt", gate=gate) == ["a.txt"]
    assert passed(at, "a.txt", gate=gate) == []


def test_quick_gates_are_run_where_that_takes_less_time(at: Checker) -> None:
    gate = BY_FILE._replace(reuse="auto")
    for _ in range(2):
        assert passed(at, "a.txt", gate=gate) == ["a.txt"]
    # Another gate looks at the content anyway.
    for runs in (["a.txt"], []):
        at.run(WHOLE, gate, paths=("a.txt",))
        assert [line for line in at.log() if line][:1] == runs
    many = [f"{number}.txt" for number in range(30)]
    for path in many:
        at.repo.write(path, "one\n")
    at.repo.git("add", "-A")
    assert passed(at, *many, gate=gate) == many
    assert passed(at, *many, gate=gate) == []


def test_by_file_a_failing_file_is_never_skipped(at: Checker) -> None:
    at.repo.write("a.txt", "BAD\n")
    both = ("a.txt", "sub/b.txt")
    for _ in range(2):
        assert passed(at, *both) == [*both]  # none of them is known to be right
    assert passed(at, "sub/b.txt") == ["sub/b.txt"]
    for _ in range(2):
        (result,) = at.run(BY_FILE, paths=both)
        assert (result.status, at.log()) == ("failed", ["a.txt"])
    at.repo.write("a.txt", "good\n")
    assert passed(at, *both) == ["a.txt"]
    assert passed(at, *both) == []


def test_by_file_a_fixer(at: Checker) -> None:
    at.tool("probe-files", '#!/bin/sh\necho "$*" >> "$OUT/log"\nsed -i s/wrong/right/ "$@"\n')
    gate = BY_FILE._replace(writes=True)
    at.repo.write("a.txt", "wrong\n")
    both = ("a.txt", "sub/b.txt")
    assert passed(at, *both, gate=gate) == [*both]
    assert passed(at, *both, gate=gate) == [*both]  # it has fixed something
    at.tool("probe-files", '#!/bin/sh\necho "$*" >> "$OUT/log"\n')
    assert passed(at, *both, gate=gate) == [*both]
    assert passed(at, *both, gate=gate) == []


def test_by_file_links_lead_to_other_files(at: Checker) -> None:
    (at.repo.path / "link.txt").symlink_to("tool.sh")
    assert passed(at, "a.txt", "link.txt") == ["a.txt", "link.txt"]
    assert passed(at, "a.txt", "link.txt") == ["link.txt"]


def test_by_file_ignored_files(at: Checker) -> None:
    at.repo.write(".gitignore", "i.txt\n")
    at.repo.write("i.txt", "1")
    for _ in range(2):
        assert passed(at, "a.txt", "i.txt") == ["a.txt", "i.txt"]


# The state folder


def test_state_that_cannot_be_written(at: Checker) -> None:
    ran(at)
    folder = at.repo.path / ".git/gitgates/proofs"
    for name in folder.rglob("*"):
        name.unlink() if name.is_file() else None
    for name in sorted(folder.rglob("*"), reverse=True):
        name.rmdir()
    folder.rmdir()
    folder.write_text("in the way")
    assert [ran(at) for _ in range(2)] == [1, 1]
    assert any("the pass of whole was not recorded for reuse: " in t for t in at.messages.texts)
    at.messages.texts.clear()
    assert passed(at, "a.txt") == ["a.txt"]


def test_reuse_off(at: Checker) -> None:
    proven(at)
    assert [ran(at, GITGATES_REUSE="0") for _ in range(2)] == [1, 1]
    off = WHOLE._replace(reuse=False)
    assert [ran(at, off) for _ in range(2)] == [1, 1]
    assert ran(at) == 0


@pytest.mark.slow
def test_durations_of_gates_that_ran(at: Checker) -> None:
    slow = WHOLE._replace(name="slow", command="sleep 0.2", reuse="")
    quick = slow._replace(name="quick", command="true")
    at.run(slow, quick)
    known = durations(str(at.repo.path / ".git/gitgates"))
    assert 0.2 <= known.pop("slow") < 20
    assert known == {}
