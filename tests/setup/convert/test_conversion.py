"""What `gitgates convert` makes of the files of other hook managers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from case_support import mixed

from gitgates.core.errors import UsageError
from gitgates.setup.convert import framework, lefthook
from gitgates.setup.convert.conversion import Conversion, convert

# Source: schema.json of lefthook 2.1.10, lefthook.dev/configuration
LEFTHOOK = {
    "top": "$schema min_version lefthook source_dir source_dir_local rc output colors extends "
    "no_tty assert_lefthook_installed skip_lfs no_auto_install install_non_git_hooks glob_matcher "
    "remotes templates ai",
    "hook": "parallel piped follow fail_on_changes fail_on_changes_diff files exclude_tags exclude "
    "skip only setup jobs commands scripts",
    "job": "name run script runner args root files fail_text timeout glob exclude tags file_types "
    "env interactive use_stdin stage_fixed skip only group priority",
}
# Source: pre_commit/clientlib.py of pre-commit 4.6.2
PRE_COMMIT = (
    "id alias name entry language language_version additional_dependencies args always_run "
    "fail_fast files exclude types types_or exclude_types pass_filenames description log_file "
    "minimum_pre_commit_version require_serial stages verbose"
)


def test_each_documented_key_is_converted_or_has_a_reason() -> None:
    for kind, keys in LEFTHOOK.items():
        assert {*keys.split()} == lefthook.KEYS[kind].keys(), kind
    assert {*PRE_COMMIT.split()} == framework.KEYS["hook"].keys()


def of(root: Path, files: dict[str, str], file: str = "") -> Conversion:
    """Convert a project of some files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return convert(str(root), str(root / file) if file else "")


JOB: dict[str, tuple[dict[str, Any], dict[str, Any] | None, str]] = {
    # a job → the keys of its gate but the command `./a`, and a part of a note
    "arguments": ({"args": "-v {staged_files}"}, {"command": "./a -v", "pass_files": True}, ""),
    "nothing to run": ({"run": " "}, None, "it has no `run`"),
    "a file in quotes": ({"run": './a "{staged_files}"'}, {"pass_files": True}, ""),
    "files in the middle": (
        {"run": "./a {staged_files} | tee x"},
        {"command": './a "$@" | tee x', "pass_files": True},
        "",
    ),
    "globs cross slashes": (
        {"glob": ["src/*.{js,ts}", "*.md"]},
        {"files": ["src/**/*.js", "src/**/*.ts", "*.md"]},
        "",
    ),
    "a folder": (
        {"root": "web/", "glob": "*.js", "exclude": ["web/x.js"]},
        {"working_dir": "web", "files": ["web/**/*.js"], "exclude": ["web/x.js"]},
        "",
    ),
    "a folder alone": ({"root": "web"}, {"working_dir": "web", "files": ["web/"]}, ""),
    "types": ({"file_types": "text"}, None, "file_types: create a gate with `types` for it"),
    "a group": ({"group": {"jobs": []}}, None, "group: create a gate for each of its jobs"),
    "an odd limit": ({"timeout": "a while"}, None, "its `timeout` is not understood"),
    "text for a failure": ({"fail_text": "Format it"}, {"description": "Format it"}, ""),
    "environment": ({"env": {"A": 1}}, {"env": {"A": "1"}}, ""),
    "a limit": ({"timeout": "90s"}, {"timeout": "90s"}, ""),
    "fixes are staged": ({"stage_fixed": True}, {"writes": True, "restage": True}, ""),
    "git add": ({"run": "./a && git add {staged_files}"}, None, "left out: its `git add`"),
    "standard input": (
        {"use_stdin": True},
        {"command": ["sh", "-c", "./a"], "pass_hook_input": True},
        "",
    ),
    "a script of a shell": (
        {"run": "if ./b; then\n  ./a\nfi"},
        {"command": "if ./b; then\n  ./a\nfi"},
        "",
    ),
    "a template": ({"run": "{dip} ./a"}, {"command": "docker ./a"}, ""),
    "its name": ({"run": "./a {lefthook_job_name}"}, {"command": "./a it"}, ""),
    "tags": ({"tags": "slow"}, {}, "tags: gates have no tags"),
    "a terminal": ({"interactive": True}, None, "interactive: a gate has no terminal"),
    "a condition": ({"only": [{"ref": "main"}]}, None, "only: gates have no conditions"),
    "an exception": ({"skip": ["merge"]}, {}, "skip: gates have no conditions, so it always runs"),
    "never": ({"skip": True}, None, "skip: it never runs"),
    "files of a command": ({"files": "git ls-files"}, None, "left out: files: a gate"),
    "all files": ({"run": "./a {all_files}"}, None, "name the folders in its command"),
    "an unknown key": ({"later": 1}, {}, "later: unknown, so it is not converted"),
    "a glob that is none": ({"glob": "a[!b]"}, None, "has no counterpart in a pattern"),
}  # fmt: skip


@pytest.mark.samples(len(JOB))
@pytest.mark.parametrize(("name", "kind"), mixed(list(JOB), ("yml", "json")))
def test_a_job_of_lefthook(tmp_path: Path, name: str, kind: str) -> None:
    job, keys, note = JOB[name]
    settings = {
        "templates": {"dip": "docker"},
        "pre-commit": {"jobs": [{"name": "it", "run": "./a", **job}]},
    }
    dump = yaml.safe_dump if kind == "yml" else json.dumps
    conversion = of(tmp_path, {f"lefthook.{kind}": dump(settings)})
    if keys is None:
        assert conversion.gates == {}
    else:
        assert conversion.gates == {"it": {"command": "./a", **keys}}
        assert conversion.hooks == {"pre-commit": {"gates": ["it"]}}
    assert note in "\n".join(conversion.notes)
    assert bool(note) is bool(conversion.notes)


def test_hooks_of_lefthook_in_toml(tmp_path: Path) -> None:
    conversion = of(
        tmp_path,
        {
            "lefthook.toml": """\
extends = ["more.yml"]
glob_matcher = "doublestar"
output = ["summary"]
[pre-commit]
parallel = true
exclude_tags = ["slow"]
setup = [{run = "npm ci"}]
[pre-commit.commands.b]
run = "./b"
[pre-commit.commands.a]
glob = "*.js"
run = "./a"
[pre-push.commands]
second = {run = "./2", priority = 2}
first = {run = "./1", priority = 1}
last = {run = "./last"}
[commit-msg.scripts."check.sh"]
runner = "bash"
[commit-msg.commands.it]
run = "./it {1} {0}"
[lint]
jobs = [{run = "x"}]
[post-checkout]
only = [{ref = "main"}]
jobs = [{run = "x"}]
""",
        },
    )
    assert conversion.gates == {
        "a": {"command": "./a", "files": ["/*.js"]},
        "b": {"command": "./b"},
        "first": {"command": "./1"},
        "second": {"command": "./2"},
        "last": {"command": "./last"},
        "check": {"command": 'bash .lefthook/commit-msg/check.sh "$@"', "pass_hook_input": True},
        "it": {"command": './it "$1" "$@"', "pass_hook_input": True},
    }
    assert conversion.hooks == {
        "pre-commit": {"gates": ["a", "b"], "strategy": "collect"},
        "pre-push": {"gates": ["first", "second", "last"]},
        "commit-msg": {"gates": ["check", "it"]},
    }
    assert [*conversion.notes] == [
        "lefthook.toml: extends: the files that it names are not read; copy their jobs",
        "lefthook.toml: output: it only affects lefthook's output",
        "lefthook.toml: lint: unknown, so it is not converted",
        (
            "lefthook.toml: pre-commit: exclude_tags: gates have no tags; remove the gates that it "
            "excludes"
        ),
        (
            "lefthook.toml: pre-commit: setup: nothing runs before the gates; make it part of "
            "their commands"
        ),
        "lefthook.toml: post-checkout: only: gates have no conditions",
    ]


LOCAL: dict[str, tuple[str, dict[str, Any] | None, str]] = {
    # keys of a hook of the framework → those of its gate, and a part of a note
    "types": (
        "types: [python], types_or: [pyi, python], exclude_types: [executable]",
        {
            "types": ["python", "!executable"],
            "types_or": ["pyi", "python"],
            "pass_files": True,
        },
        "",
    ),
    "files": (
        r"files: '^src/.*\.py$', exclude: '^(?:a|b)/'",
        {"files": ["src/**/*.py"], "exclude": ["/a/", "/b/"], "pass_files": True},
        "",
    ),
    "no files": ("pass_filenames: false, types: [text]", {"types": ["text"]}, ""),
    "always": ("pass_filenames: false, always_run: true, files: x", {}, ""),
    "always, with files": ("always_run: true", None, "stays pre-commit's: `always_run`"),
    "arguments": ('args: ["-x", "a b"]', {"command": "./it -x 'a b'", "pass_files": True}, ""),
    "a shell": (
        """entry: 'bash -c ''ruff "$@"'' --'""",
        {"command": ["bash", "-c", 'ruff "$@"', "--"], "pass_files": True},
        "",
    ),
    "a script": ("language: script, entry: x", {"command": "./x", "pass_files": True}, ""),
    "its name": ("name: All is well", {"description": "All is well", "pass_files": True}, ""),
    "an environment": ("language: python", None, "`language: python` needs its environment"),
    "an expression": ("files: '(?!a)b'", None, "stays pre-commit's: `(?!a)b` has no"),
    "verbose": ("verbose: true", {"pass_files": True}, "verbose: each run keeps the logs"),
    "a fixer": (
        "entry: ruff format",
        {"command": "ruff format", "pass_files": True},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "gate", "note"), LOCAL.values(), ids=LOCAL)
def test_a_local_hook_of_the_framework(
    tmp_path: Path, keys: str, gate: dict[str, Any] | None, note: str
) -> None:
    usual = {"id": "it", "name": "it", "language": "system", "entry": "./it"}
    hook = {**usual, **yaml.safe_load(f"{{{keys}}}")}
    text = yaml.safe_dump({"repos": [{"repo": "local", "hooks": [hook]}]})
    conversion = of(tmp_path, {".pre-commit-config.yaml": text})
    if gate is None:
        assert conversion.gates == {
            "pre-commit": {
                "description": "The hooks of .pre-commit-config.yaml",
                "pre-commit": True,
                "writes": True,
            }
        }
    else:
        assert conversion.gates == {"it": {"command": "./it", **gate}}
    assert note in "\n".join(conversion.notes)
    assert bool(note) is bool(conversion.notes)


def test_hooks_of_repositories_stay_the_frameworks(tmp_path: Path) -> None:
    text = """\
default_install_hook_types: [pre-commit, commit-msg]
default_stages: [pre-commit]
repos:
- {repo: local, hooks: [{id: first, entry: ./1, language: system, stages: [push]}]}
- repo: https://example.org/x
  hooks: [{id: ruff}, {id: msg, stages: [commit-msg]}, {id: later, stages: [post-checkout]}]
- {repo: local, hooks: [{id: last, entry: ./2, language: system, pass_filenames: false}]}
"""
    conversion = of(tmp_path, {".pre-commit-config.yaml": text})
    assert conversion.gates["pre-commit"]["env"] == {"SKIP": "first,last"}
    assert conversion.hooks == {
        "pre-push": {"gates": ["first"]},
        "pre-commit": {"gates": ["pre-commit", "last"], "strategy": "collect"},
        "commit-msg": {"gates": ["pre-commit"]},
    }
    assert conversion.notes == (
        ".pre-commit-config.yaml: post-checkout: no gate runs pre-commit there; keep its own hook",
    )


def test_no_hook_of_the_framework_is_skipped_for_its_name(tmp_path: Path) -> None:
    text = """
    repos:
    - repo: https://example.com/x
      hooks: [{id: lint}, {id: other, alias: last}]
    - repo: local
      hooks:
      - {id: lint, entry: ./a, language: system}
      - {id: last, entry: ./b, language: system}
      - {id: types, entry: ./c, language: system}
      - {id: slow, entry: ./d, language: system}
      - {id: slow, entry: ./e, language: python}
      - {id: "a,other", entry: ./f, language: system}
    """
    conversion = of(tmp_path, {".pre-commit-config.yaml": text})
    assert [*conversion.gates] == ["pre-commit", "types"]
    assert conversion.gates["pre-commit"]["env"] == {"SKIP": "types"}
    assert [note.split(": ")[1] for note in conversion.notes] == [
        *("lint", "last", "slow", "slow", "a,other"),
    ]


PACKAGE = {
    "scripts": {"prepare": "husky", "types": "tsc", "fix": "eslint --fix"},
    "devDependencies": {"eslint": "9"},
    "lint-staged": {"*.{js,ts}": ["eslint --fix", "git add"]},
}
SCRIPT = "if true; then\n  npx lint-staged\nfi\n"


def test_husky_and_lint_staged(tmp_path: Path) -> None:
    files = {
        "package.json": json.dumps(PACKAGE),
        ".husky/pre-commit": "echo lint\nnpx lint-staged && npm run types\nnpm run fix\n",
        ".husky/pre-push": SCRIPT,
        ".husky/post-merge": "npm ci\n",
    }
    conversion = of(tmp_path, files)
    assert conversion.gates == {
        "lint-staged": {
            "command": "npx --no-install eslint --fix",
            "files": ["*.js", "*.ts"],
            "pass_files": True,
            "writes": True,
            "restage": True,
        },
        "types": {"command": "npm run types"},
        "fix": {"command": "npm run fix"},
        "husky-pre-push": {
            "command": 'PATH="$PWD/node_modules/.bin:$PATH" sh -e .husky/pre-push',
            "pass_hook_input": True,
        },
        "ci": {"command": "npm ci"},
    }
    assert conversion.hooks == {
        "pre-commit": {"gates": ["lint-staged", "types", "fix"]},
        "pre-push": {"gates": ["husky-pre-push"]},
        "post-merge": {"gates": ["ci"]},
    }
    assert conversion.notes == ()
    assert of(tmp_path, {}, ".husky").gates == conversion.gates


@pytest.mark.parametrize(
    "call", ["npx lint-staged", "npx lint-staged --config x.json", "npm run it"]
)
def test_lint_staged_with_a_configuration_elsewhere(tmp_path: Path, call: str) -> None:
    package = {"scripts": {"it": "lint-staged --cwd web"}}
    files = {"package.json": json.dumps(package), ".husky/pre-commit": f"{call}\n./b\n"}
    conversion = of(tmp_path, files)
    assert [*conversion.gates] == ["b"]
    what = "its configuration is not read; create gates for it by hand"
    assert conversion.notes == (f".husky/pre-commit: {call}: {what}",)


@pytest.mark.parametrize(
    ("script", "keys"),
    [
        ("if true; then npx lint-staged; fi\n", {"writes": True, "restage": True}),
        ('[ -n "$CI" ] && exit 0\nmake\n', {}),
        ("export A=1\nmake fmt\ngit add .\n", {"writes": True, "restage": True}),
        ("cd web\nmake\n", {}),
        ('echo "running tests"; ./a\n', {}),
        ("set -e; ./a\n", {}),
        ("set -euo pipefail\n./a | ./b\n", {}),
        ("./a; ./b\n", {}),
        ("./a & ./b\nwait\n", {}),
        ("./a && ./b || ./c\n", {}),
        ("grep -q 'a && b' c\n", {}),
        ("./a 'of\nlines'\n", {}),
    ],
)
def test_a_script_that_is_more_than_commands(
    tmp_path: Path, script: str, keys: dict[str, bool]
) -> None:
    gates = of(tmp_path, {".husky/pre-commit": script}).gates
    command = 'PATH="$PWD/node_modules/.bin:$PATH" sh -e .husky/pre-commit'
    assert gates == {"husky-pre-commit": {"command": command, **keys}}


def test_each_command_of_a_script_is_a_gate(tmp_path: Path) -> None:
    script = "set -e\n. .husky/_/husky.sh\n# all && b\ntest -f a\n./b 'c d'\nA=1 ./d\n"
    gates = of(tmp_path, {".husky/pre-commit": script}).gates
    assert [gate["command"] for gate in gates.values()] == ["test -f a", "./b 'c d'", "A=1 ./d"]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("./a \\\n  --b", ["./a    --b"]),
        ("./a && gitgates git-hook --via=husky pre-commit", ["./a"]),
        ("echo 'a; b'; ", None),
        ("echo 'a b'", []),
        ("echo x | ./a", None),
        ("./a >a.log 2>&1", None),
        ("./a 'b;c'", None),
    ],
)
def test_a_line_of_a_script(tmp_path: Path, line: str, commands: list[str] | None) -> None:
    gates = of(tmp_path, {".husky/pre-commit": f"{line}\n./last\n"}).gates
    if commands is None:
        assert [*gates] == ["husky-pre-commit"]
    else:
        assert [gate["command"] for gate in gates.values()] == [*commands, "./last"]


def test_one_of_several_files(tmp_path: Path) -> None:
    files = {
        "lefthook.yml": "pre-commit: {jobs: [{name: a, run: ./a}]}\n",
        "package.json": json.dumps({"simple-git-hooks": {"pre-commit": "./b && ./c"}}),
        ".lintstagedrc.json": '{"*.md": "./d"}',
    }
    whole = of(tmp_path, files)
    assert [*whole.gates] == ["a", "b", "c", "lint-staged"]
    assert whole.managers == ("lefthook", "simple-git-hooks")
    assert [*of(tmp_path, {}, "lefthook.yml").gates] == ["a"]
    assert [*of(tmp_path, {}, "package.json").gates] == ["b", "c", "lint-staged"]
    assert of(tmp_path, {}, ".lintstagedrc.json").gates == of(tmp_path, {}, "package.json").gates


def test_equal_names_and_equal_gates(tmp_path: Path) -> None:
    text = """\
pre-commit: {jobs: [{name: same, run: ./a}, {name: CONTINUE, run: ./c}]}
pre-push: {jobs: [{name: same, run: ./a}, {name: CONTINUE, run: ./d}]}
"""
    conversion = of(tmp_path, {"lefthook.yml": text})
    assert conversion.hooks == {
        "pre-commit": {"gates": ["same", "CONTINUE-gate"]},
        "pre-push": {"gates": ["same", "CONTINUE-gate-2"]},
    }


def test_a_file_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "lefthook.yml").symlink_to("config/hooks.yml")
    files = {"config/hooks.yml": "pre-commit: {jobs: [{name: a, run: ./a}]}\n"}
    assert [*of(tmp_path, files, "lefthook.yml").gates] == ["a"]


def test_a_named_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lefthook.yml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"lefthook\.yml: cannot be read: byte 1 is not UTF-8$"):
        of(tmp_path, {}, "lefthook.yml")


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lefthook\.yml: is not valid YAML"):
        of(tmp_path, {"lefthook.yml": "a: [\n"})


def test_a_file_without_hooks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"package\.json: found nothing to convert"):
        of(tmp_path, {"package.json": "{}"}, "package.json")
