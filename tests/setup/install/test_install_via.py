"""install-hooks --via: an entry of ours in another manager's file, and out of it byte for byte."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from install_support import BIN, Repo, make_repo

from gitgates.core.errors import ConfigError
from gitgates.setup.install import managers

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = ("pre-commit", "commit-msg", "pre-push")
PACKAGE = """\
{
\t"name": "x", "simple-git-hooks": {
\t\t"pre-commit": "npx \\"lint-staged\\"",
\t\t"pre-push": "npm test"
\t},
\t"devDependencies": {"simple-git-hooks": "2"}
}"""
LEFTHOOK = """\
# mine
pre-commit:
  parallel: true
  jobs:
    - run: lint # why
commit-msg: {{commands: {{}}}}
{0}pre-push:
  commands:
    test: {{run: test}}
# the end
"""
FILES = {
    "lefthook.yml": ("lefthook", LEFTHOOK.format("").replace("commit-msg: {commands: {}}\n", "")),
    ".config/lefthook.yaml": ("lefthook", "pre-push:\n  scripts:\n    s.sh: {runner: sh}"),
    "prek.toml": ("prek", '[[repos]]\nrepo = "builtin"\nhooks = [{ id = "check-yaml" }]\n'),
    ".pre-commit-config.yaml": ("prek", "repos:\n  - repo: a\n    rev: b\n"),
    "package.json": ("simple-git-hooks", PACKAGE),
    ".simple-git-hooks.json": ("simple-git-hooks", '{"pre-push": "a"}'),
    ".husky/pre-commit": ("husky", "npx lint-staged"),
    ".husky/pre-push": ("husky", "#!/usr/bin/env sh\n# mine\nnpm test\n"),
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path / "home")
    made.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
    made.configure(*HOOKS)
    return made


def files(repo: Repo) -> dict[str, bytes]:
    return {
        str(path.relative_to(repo.path)): path.read_bytes()
        for path in repo.path.rglob("*")
        if path.is_file() and ".git/" not in str(path)
    }


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_added_and_taken_out_byte_for_byte(repo: Repo, file: str) -> None:
    manager, text = FILES[file]
    repo.write(file, text, 0o640)
    before = files(repo)
    code, out, err = repo.gitgates("install-hooks", "--via", manager)
    assert (code, err) == (0, "")
    assert f"{file}: gitgates hooks were added: pre-commit" in out or manager == "husky"
    after = files(repo)
    assert after[file] != before[file]
    entries = managers.hooks_in(b"\n".join(after.values()).decode())
    assert set(entries) == {*HOOKS, "pre-merge-commit"}
    assert (repo.path / file).stat().st_mode & 0o777 == 0o640
    again = repo.gitgates("install-hooks", "--via", manager)[1]
    assert "gitgates hooks are already up to date" in again
    assert files(repo) == after
    named = ("--via", manager) if file.startswith("lefthook") else ()
    code, out, err = repo.gitgates("uninstall-hooks", *named)
    assert (code, err) == (0, "")
    assert "gitgates hooks were removed" in out
    assert files(repo) == before
    assert "no gitgates hooks" in repo.gitgates("uninstall-hooks")[1]


@pytest.mark.parametrize("manager", ["lefthook", "husky"])
def test_a_file_that_was_not_there_goes_again(repo: Repo, manager: str) -> None:
    assert repo.gitgates("install-hooks", "--via", manager)[0] == 0
    assert "removed; it contained only gitgates hooks" in repo.gitgates("uninstall-hooks")[1]
    assert list(files(repo)) == ["pyproject.toml"]


def test_a_file_that_says_who_made_it_goes_too(repo: Repo) -> None:
    repo.gitgates("install-hooks", "--via", "lefthook")
    ours = (repo.path / "lefthook.yml").read_text()
    made = "# made by `gitgates install-hooks --via lefthook`\n"
    repo.write("lefthook.yml", made + ours)
    assert repo.gitgates("install-hooks", "--via", "lefthook")[0] == 0
    assert (repo.path / "lefthook.yml").read_text() == ours
    repo.write("lefthook.yml", made + ours)
    assert repo.gitgates("uninstall-hooks", "--via", "lefthook")[0] == 0
    assert not (repo.path / "lefthook.yml").exists()


def test_a_manager_that_is_not_there(repo: Repo) -> None:
    code, out, err = repo.gitgates("install-hooks", "--via", "simple-git-hooks")
    assert (code, out) == (78, "")
    assert err.startswith("gitgates: no package.json found, nor another file that simple-git-")


REFUSED = {
    "flow style": ("lefthook.yml", "{pre-commit: {commands: {a: {run: a}}}}\n"),
    "flow style inside": ("lefthook.yml", "pre-commit: {commands: {a: {run: a}}}\n"),
    "nothing in it": ("lefthook.yml", "pre-commit:\n"),
    "an anchor": (
        "lefthook.yml",
        "pre-push: &a\n  commands:\n    t: {run: t}\npre-commit: *a\n",
    ),
    "ours by hand": ("lefthook.yml", "pre-commit:\n  commands:\n    zz-gitgates: {run: a}\n"),
    "a tab": ("lefthook.yml", "pre-commit:\n\tcommands: {}\n"),
    "no YAML": ("lefthook.yml", "pre-commit: [\n"),
    "no mapping": ("lefthook.yml", "- a\n"),
    "JSON": ("lefthook.json", '{"pre-commit": {"commands": {"a": {"run": "a"}}}}\n'),
    "lefthook's TOML": ("lefthook.toml", '[pre-commit.commands.a]\nrun = "a"\n'),
    "no TOML": ("prek.toml", "a\n"),
    "no TOML that ends": ("prek.toml", "a = " + "[" * 5_000),
    "a number without end": ("prek.toml", "a = " + "1" * 5_000 + "\n"),
    "an inline list": ("prek.toml", 'repos = [{ repo = "meta", hooks = [] }]\n'),
    "no object": ("package.json", '{"simple-git-hooks": "./hooks.json"}\n'),
    "no such key": ("package.json", '{"name": "x"}\n'),
    "no JSON": ("package.json", '{"simple-git-hooks": {},}\n'),
    "a comment": ("package.json", '{"simple-git-hooks": {"pre-commit": "a # b"}}\n'),
    "two lines": ("package.json", '{"simple-git-hooks": {"pre-commit": "a\\nb"}}\n'),
    "the background": ("package.json", '{"simple-git-hooks": {"pre-commit": "a &"}}\n'),
    "a program": ("simple-git-hooks.mjs", "export default {}\n"),
    "an end": (".husky/pre-commit", "npm test\nexit 0\n"),
    "a heredoc": (".husky/pre-commit", "cat <<X\n"),
    "a line that goes on": (".husky/pre-commit", "npm test \\\n"),
    "CRLF": (".husky/pre-commit", "npm test\r\n"),
}


# One of each format; the others are as much refused by what adds the entry: see the next test.
DIFFERENT = ("an anchor", "JSON", "an inline list", "a comment", "a program", "an end")


@pytest.mark.samples(len(DIFFERENT))
@pytest.mark.parametrize("why", sorted(REFUSED, key=DIFFERENT.__contains__, reverse=True))
def test_what_could_be_damaged_is_refused_with_what_to_do(repo: Repo, why: str) -> None:
    file, text = REFUSED[why]
    name = file.split("/")[0].split(".")[0] or "husky"
    manager = "simple-git-hooks" if name in ("package", "simple-git-hooks") else name
    repo.write(file, text)
    before = files(repo)
    code, out, err = repo.gitgates("install-hooks", "--via", manager)
    assert (code, out) == (78, "")
    assert err.startswith(f"gitgates: {file}")
    if not why.startswith(("no YAML", "a tab", "no TOML", "no JSON")):
        assert f"gitgates git-hook --via={manager} pre-commit" in err or manager == "prek"
    assert files(repo) == before
    assert repo.hooks() == []


def test_whatever_could_be_damaged_is_refused() -> None:
    added = []
    for why, (file, text) in REFUSED.items():
        name = file.split("/")[0].split(".")[0] or "husky"
        manager = "simple-git-hooks" if name in ("package", "simple-git-hooks") else name
        with contextlib.suppress(ConfigError):
            managers.remove(text, file)  # as it is done before, to put in the entry anew
            managers.add(text, manager, file, HOOKS[:1])
            added.append(why)
    assert added == []


def test_the_lines_for_lefthooks_toml_are_toml(repo: Repo) -> None:
    repo.write("lefthook.toml", "")
    _code, _out, err = repo.gitgates("install-hooks", "--via", "lefthook")
    lines = tomllib.loads(err.partition("by hand:\n")[2])
    assert lines["pre-commit"]["commands"]["zz-gitgates"] == {
        "files": "echo lefthook.toml",
        "run": "true {files} && gitgates git-hook --via=lefthook pre-commit {0}",
    }


def test_the_entries_are_what_their_readers_read(repo: Repo) -> None:
    for file, (manager, text) in FILES.items():
        if manager != "husky":
            repo.write(file, text)
    wanted = 'true {files} && gitgates git-hook --via=lefthook pre-push "{1}" "{2}"'
    file = "lefthook.yml"
    after = yaml.safe_load(managers.add(FILES[file][1], "lefthook", file, HOOKS))
    assert after["pre-commit"]["jobs"][-1]["name"] == "gitgates"
    assert "commands" not in after["pre-commit"]
    assert after["pre-push"]["commands"]["zz-gitgates"] == {
        "files": f"echo {file}",
        "run": wanted,
        "use_stdin": True,
    }
    hooks = json.loads(managers.add(PACKAGE, "simple-git-hooks", "package.json", HOOKS))
    command = 'gitgates git-hook --via=simple-git-hooks pre-commit "$@"'
    assert hooks["simple-git-hooks"]["pre-commit"] == f'npx "lint-staged" && {command}'


SIGNS = "pre-commit: \n#[]{}'\"|>ab&*-\t\r\\=$0<"


@given(st.sampled_from(sorted(FILES)), st.text(alphabet=SIGNS, max_size=30), st.integers(0, 40))
def test_whatever_the_text_it_comes_back(file: str, more: str, place: int) -> None:
    manager, text = FILES[file]
    hooks = HOOKS[:1] if manager == "husky" else HOOKS
    before = text[:place] + more + text[place:]
    try:
        after = managers.add(before, manager, file, hooks)
    except ConfigError:
        return
    assert after != before
    assert managers.remove(after, file) == before
    assert set(hooks) <= set(managers.hooks_in(after))


@pytest.mark.slow
def test_a_hook_runs_theirs_and_the_gates_and_both_read_what_is_pushed(
    repo: Repo, tmp_path: Path
) -> None:
    # As husky 9 installs it: a stub for each hook, which runs the script of that name.
    repo.write(".husky/_/h", 'sh -e "$(dirname "$(dirname "$0")")/$(basename "$0")" "$@"\n')
    for hook in ("pre-commit", "pre-push"):
        repo.write(f".husky/_/{hook}", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"', 0o755)
    repo.write(".husky/pre-commit", "echo theirs >>log\n[ ! -e lint ] && echo not reached by -e\n")
    repo.write(".husky/pre-push", 'echo "$1" >>log\ncut -d" " -f1 >>log\n')
    repo.git("config", "core.hooksPath", ".husky/_")
    gate = '[tool.gitgates.gates.g]\ncommand = "echo gate >>log; [ ! -e fail ]"\n'
    repo.configure("pre-commit", "pre-push", gate=gate)
    assert repo.gitgates("install-hooks", "--via", "husky")[0] == 0
    repo.git("init", "-q", "--bare", tmp_path / "far.git")
    assert repo.commit("a").returncode == 0
    far = str(tmp_path / "far.git")
    done = repo.run("git", "push", far, "main", "main:two")
    assert done.returncode == 0, done.stderr
    log = (repo.path / "log").read_text().splitlines()
    assert log == ["theirs", "gate", "gate", far, "refs/heads/main", "refs/heads/main"]
    repo.run("git", "push", far, "main")  # nothing is pushed: theirs runs all the same
    assert (repo.path / "log").read_text().splitlines()[6:] == [far]
    repo.write("fail", "")
    assert repo.commit("b").returncode == 1
    assert repo.run("git", "push", far, "main:three").returncode == 1
    (repo.path / "fail").unlink()
    repo.write("lint", "")
    assert repo.commit("c").returncode == 1  # as theirs alone would say


def test_husky_below_the_root_is_taken_up_from_where_it_is(repo: Repo) -> None:
    (repo.path / "web app/.husky/_").mkdir(parents=True)
    repo.git("config", "core.hooksPath", "web app/.husky/_")
    assert (
        "next: npx husky 'web app/.husky'\n" in repo.gitgates("install-hooks", "--via", "husky")[1]
    )
    assert "  npx husky 'web app/.husky'\n" in repo.gitgates("doctor")[1]


@pytest.mark.slow
def test_a_script_in_a_linked_worktree_may_go_into_a_folder(repo: Repo, tmp_path: Path) -> None:
    repo.write("web/a", "")
    repo.configure("pre-commit", gate='[tool.gitgates.gates.g]\ncommand = "pwd; false"\n')
    repo.git("add", "-A")
    repo.git("commit", "-qm", "a")
    script = b"#!/bin/sh\ncd web\ngitgates git-hook --via=own pre-commit"
    repo.keep("pre-commit", script)
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", linked)
    done = Repo(linked, repo.env).commit("b")
    assert f"  | {linked}\n" in done.stderr, done.stderr
    assert "the configuration has uncommitted changes" not in done.stderr


def test_install_hooks_names_the_manager_and_the_command(repo: Repo) -> None:
    said = "  To let it run the gates instead: gitgates install-hooks --via {}\n"
    names = {"lefthook": "lefthook.yml", "husky": ".husky/pre-commit"}
    names |= {"simple-git-hooks": "package.json", "pre-commit": ".pre-commit-config.yaml"}
    repo.write("package.json", '{"devDependencies": {"simple-git-hooks": "2"}}')
    assert "--via" not in repo.gitgates("install-hooks")[1]
    for manager, file in names.items():
        repo.write(file, FILES[file][1])
        out = repo.gitgates("install-hooks")[1]
        assert f"gitgates: {manager} is used here ({file})" in out
        assert said.format(manager) in out
    (repo.path / ".pre-commit-config.yaml").unlink()
    repo.keep("pre-push", b"#!/bin/sh\n# File generated by prek: https://x\n")
    out = repo.gitgates("install-hooks")[1]
    assert "prek is used here (.git/hooks/pre-push)" in out
