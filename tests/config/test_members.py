"""Settings of members, and files that settings extend: what counts, and what each problem says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitgates.config.folders import expand
from gitgates.config.load import describe, inspect, load, parse_files, read_files
from gitgates.config.weaker import weaker
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config, Gate, Hook, make_gate
from gitgates.engine.plan.match import select

ROOT = """
members = ["web", "packages/*"]
[gates.secrets]
command = "scan"
[hooks.pre-commit]
gates = ["secrets"]
strategy = "collect"
"""
WEB = """
root = false
[gates.lint]
command = "npx eslint"
files = ["*.ts", "/src/", "!src/gen/*.ts"]
exclude = ["vendor/"]
pass_files = true
on_fail = "explain"
[gates.explain]
command = "echo"
working_dir = "tools"
after = ["lint", "packages/ui:test"]
[hooks.pre-commit]
gates = ["lint"]
[hooks.Stop]
gates = ["lint", "secrets"]
"""
UI = """
[tool.gitgates]
root = false
[tool.gitgates.gates.test]
command = "pytest"
[tool.gitgates.hooks.pre-commit]
gates = ["test", "web:lint"]
"""
FILES = {"gitgates.toml": ROOT, "web/gitgates.toml": WEB, "packages/ui/pyproject.toml": UI}


def parsed(files: Mapping[str, str]) -> tuple[Config, str]:
    """Return the configuration in files, and what is wrong with it."""
    config, problems = parse_files({name: text.encode() for name, text in files.items()})
    assert config
    return config, describe(list(problems))


def right(files: Mapping[str, str]) -> Config:
    config, said = parsed(files)
    assert said == ""
    return config


def wrong(**files: str) -> str:
    """Return what is wrong with FILES, where these are otherwise."""
    names = {
        "root": "gitgates.toml",
        "web": "web/gitgates.toml",
        "ui": "packages/ui/pyproject.toml",
    }
    others = {names.get(name, name): text for name, text in files.items()}
    return parsed({**FILES, **others})[1]


def by_name(config: Config) -> dict[str, Gate]:
    return {gate.name: gate for gate in config.gates}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_gates_of_members_have_their_folder() -> None:
    config = right(FILES)
    assert [gate.name for gate in config.gates] == [
        *("secrets", "web:lint", "web:explain", "packages/ui:test")
    ]
    gates = by_name(config)
    assert gates["secrets"] == make_gate(name="secrets", command="scan")
    assert gates["web:lint"] == make_gate(
        name="web:lint",
        command="npx eslint",
        working_dir="web",
        files=("/web/**/*.ts", "/web/src/", "!/web/src/gen/*.ts"),
        exclude=("/web/**/vendor/",),
        pass_files=True,
        on_fail="web:explain",
    )
    assert gates["web:explain"].program.working_dir == "web/tools"
    assert gates["web:explain"].schedule.after == ("web:lint", "packages/ui:test")
    assert gates["packages/ui:test"].selection.files == ("/packages/ui/",)


def test_hooks_of_members_add_to_those_of_the_root() -> None:
    config = right(FILES)
    assert config.hooks == (
        Hook(
            name="pre-commit",
            gates=("secrets", "web:lint", "packages/ui:test"),
            strategy="collect",
        ),
        Hook(name="Stop", gates=("web:lint", "secrets")),
    )
    assert config.members == ("web", "packages/*")
    assert config.sources == tuple(FILES)


@pytest.mark.parametrize(
    ("root", "member", "commit", "merge"),
    [
        ("pre-commit", "pre-commit", "secrets web:lint", None),
        ("pre-commit", "pre-merge-commit", "secrets", "secrets web:lint"),
        ("pre-merge-commit", "pre-commit", "web:lint", "secrets web:lint"),
    ],
)
def test_a_merge_runs_the_gates_of_commits_too(
    root: str, member: str, commit: str, merge: str | None
) -> None:
    config = right(
        {
            "gitgates.toml": ROOT.replace("pre-commit", root),
            "web/gitgates.toml": WEB.replace("hooks.pre-commit", f"hooks.{member}").replace(
                ', "packages/ui:test"', ""
            ),
        }
    )
    hooks = {hook.name: " ".join(hook.gates) for hook in config.hooks}
    assert (hooks["pre-commit"], hooks.get("pre-merge-commit")) == (commit, merge)


PATHS = (
    *("a.ts", "x/b.ts", "vendor/c.ts", "src/d.py", "src/gen/e.ts", "x/src/f.py", "x/y/vendor/z"),
    *("!a.ts", "b.ts", "gen/x.ts", "x"),
)


@pytest.mark.parametrize(
    ("files", "exclude"),
    [
        (None, []),
        (["*.ts"], []),
        (["/src/"], []),
        (["src/"], []),
        (["src/*.py"], []),
        (["**/src/**"], []),
        (["*.ts", "!gen/"], ["vendor/"]),
        (["*", "!*.py"], ["x"]),
        (["\\!a.ts", "[ab].ts"], []),
        ([], []),
    ],
)
def test_patterns_match_below_the_folder_as_they_do_in_a_root(
    files: list[str] | None, exclude: list[str]
) -> None:
    for folder in ("web", "u*i", "a[b]\\c"):
        assert_matches_below(folder, files, exclude)


def assert_matches_below(folder: str, files: list[str] | None, exclude: list[str]) -> None:
    member = f"root = false\n[gates.g]\ncommand = 'x'\nexclude = {json.dumps(exclude)}\n"
    member += "" if files is None else f"files = {json.dumps(files)}\n"
    gate = right({"gitgates.toml": "members = ['*']", f"{folder}/gitgates.toml": member}).gates[0]
    expected = select(PATHS, None if files is None else tuple(files), tuple(exclude))
    below = tuple(f"{folder}/{path}" for path in PATHS)
    selected = select((*below, *PATHS), gate.selection.files, gate.selection.exclude)
    assert selected == tuple(f"{folder}/{path}" for path in expected), folder


TREE = {"": ["web", "packages", ".hidden"], "packages": ["ui", "api-x", ".git"], "web": []}


@pytest.mark.parametrize(
    ("patterns", "folders"),
    [
        (("web",), ("web",)),
        (("nowhere",), ("nowhere",)),
        (("packages/*",), ("packages/api-x", "packages/ui")),
        (("packages/*-x", "packages/ui", "packages/*"), ("packages/api-x", "packages/ui")),
        (("*",), ("packages", "web")),
        ((".h*",), (".hidden",)),
        (("*/ui",), ("packages/ui", "web/ui")),
        (("web/*",), ()),
    ],
)
def test_folders_of_members(patterns: tuple[str, ...], folders: tuple[str, ...]) -> None:
    assert expand(patterns, lambda folder: TREE.get(folder, [])) == folders


def test_what_only_a_star_matches_needs_no_settings() -> None:
    assert [g.name for g in right({"gitgates.toml": ROOT.replace('"web", ', "")}).gates] == [
        "secrets"
    ]


SET = "Set it in gitgates.toml."
WHOLE = f"applies to the whole repository. {SET}"
MOVE = "is read only in the settings of the root. Move it there, or remove it."
DEFINE = "is not defined. Define it with a command, or remove the name."
WRONG: list[tuple[dict[str, str], list[str]]] = [
    (
        {"root": f"root = false\n{ROOT}"},
        [
            "gitgates.toml: root: is false, but this is the root.",
            "Remove it, or run gitgates where the settings of the root are.",
        ],
    ),
    (
        {"web": WEB.replace("root = false", "")},
        [
            "web/gitgates.toml: is a member (`gitgates.toml: members`),",
            "and must say that it is not a root. Add to it: root = false",
        ],
    ),
    (
        {"root": ROOT.replace('"web"', '"web", "docs"')},
        [
            "docs/gitgates.toml: does not exist, but `gitgates.toml: members` names that folder.",
            "Create it with root = false, or [tool.gitgates] in docs/pyproject.toml.",
        ],
    ),
    (
        {"root": ROOT + '[gates."web:lint"]\ncommand = "x"\n'},
        [
            'gitgates.toml: gates."web:lint": is the name of a gate of web/gitgates.toml.',
            "Choose another name.",
        ],
    ),
    ({"web": f"members = []\n{WEB}"}, [f"web/gitgates.toml: members: {MOVE}"]),
    (
        {"web": f"jobs = 2\n{WEB}[guard]\nno_verify = 'off'\n"},
        [f"web/gitgates.toml: jobs: {WHOLE}\nweb/gitgates.toml: guard: {WHOLE}"],
    ),
    (
        {"ui": UI + 'strategy = "collect"\n'},
        [
            "packages/ui/pyproject.toml: tool.gitgates.hooks.pre-commit.strategy:",
            f"applies to the whole hook. {SET}",
        ],
    ),
    (
        {"web": WEB + '[hooks.commit-msg]\ngates = ["lint"]\n'},
        [
            "web/gitgates.toml: hooks.commit-msg: has no paths,",
            f"but a member's gates run for the paths below it. {SET}",
        ],
    ),
    (
        {"web": WEB + '[hooks.SubagentStop]\ngates = ["review"]\n'},
        [
            "web/gitgates.toml: hooks.SubagentStop.gates:",
            f"`review` is about the whole repository. {SET}",
        ],
    ),
    (
        {"web": WEB.replace('gates = ["lint"]', 'gates = ["lnt"]')},
        [f"web/gitgates.toml: hooks.pre-commit.gates: gate `lnt` {DEFINE}"],
    ),
    (
        {"web": WEB.replace('on_fail = "explain"', 'on_fail = "nothing"')},
        [f"web/gitgates.toml: gates.lint.on_fail: gate `nothing` {DEFINE}"],
    ),
    (
        {"ui": UI.replace('command = "pytest"', "comand = 1")},
        [
            "packages/ui/pyproject.toml: tool.gitgates.gates.test.comand: unknown key.",
            "Did you mean `command`?\npackages/ui/pyproject.toml: tool.gitgates.gates.test:",
            'has no `command`. Add command = "…" to `packages/ui:test`.',
        ],
    ),
    (
        {"gitgates.local.toml": "members = []\nextends = []\n"},
        [f"gitgates.local.toml: members: {MOVE}\ngitgates.local.toml: extends: {MOVE}"],
    ),
]


@pytest.mark.parametrize(("files", "said"), WRONG)
def test_problems_name_the_file_that_they_are_in(files: dict[str, str], said: list[str]) -> None:
    assert wrong(**files) == " ".join(said)


@pytest.mark.parametrize(
    ("key", "entry", "said"),
    [
        (
            "members",
            "../b",
            'got "../b", expected a folder below the root, such as web or packages',
        ),
        ("members", "/", 'got "/", expected a folder below the root'),
        (
            "members",
            "a/**",
            'got "a/**", expected a folder with at most one `*` in each name. Name',
        ),
        ("members", "a/?", 'got "a/?", expected a folder with at most one `*` in each name'),
        ("extends", "/a.toml", 'got "/a.toml", expected a path relative to this file: others do'),
        ("extends", "~/a.toml", 'got "~/a.toml", expected a path relative to this file: others do'),
        ("extends", "gates.yml", 'got "gates.yml", expected a file in TOML, such as ../shared/gat'),
        ("extends", "https://x.invalid/a.toml", "expected a file in the repository: others"),
        ("extends", "git@x.invalid:a.toml", "expected a file in the repository: others could"),
        ("extends", "../a.toml", "`../a.toml` is not a file of the repository. Copy it into the"),
        ("extends", ".git/a.toml", "`.git/a.toml` is not a file of the repository. Copy it into"),
    ],
)
def test_entries_that_are_refused(key: str, entry: str, said: str) -> None:
    _config, problems = parse_files({"gitgates.toml": f'{key} = ["{entry}"]'.encode()})
    (problem,) = problems
    assert problem.location == f"gitgates.toml: {key}[0]"
    assert said in describe([problem])


def test_two_files_of_one_member_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^web/gitgates\.toml: settings are also in web/pyproj"):
        parsed({**FILES, "web/pyproject.toml": "[tool.gitgates]\n"})


def test_a_pyproject_of_a_member_that_is_not_about_us_need_not_be_right() -> None:
    assert right({**FILES, "web/pyproject.toml": "[project"}) == right(FILES)


# Local settings


def test_local_settings_change_gates_of_members_by_their_whole_names() -> None:
    local = '[gates."web:lint"]\ntimeout = 7\n[hooks.pre-commit]\ngates = ["web:lint"]\n'
    config = right({**FILES, "gitgates.local.toml": local})
    assert by_name(config)["web:lint"].schedule.timeout_s == 7.0
    assert config.hooks[0].gates == ("web:lint",)


def test_a_required_gate_of_a_member_stays() -> None:
    local = '[gates."web:lint"]\ncommand = "true"\n'
    web = WEB.replace("[gates.lint]", "[gates.lint]\nrequired = true")
    said = wrong(**{"web": web, "gitgates.local.toml": local})
    assert said == (
        'gitgates.local.toml: gates."web:lint".command: gate `web:lint` is required and cannot be '
        "changed locally. Change it in web/gitgates.toml instead."
    )
    local = '[hooks.pre-commit]\ngates = ["secrets"]\n'
    said = wrong(**{"web": web, "gitgates.local.toml": local})
    assert "removes the required gate `web:lint`" in said


def test_weaker_members_are_seen() -> None:
    before = right(FILES)
    less = {**FILES, "web/gitgates.toml": WEB.replace('"*.ts", ', "")}
    assert weaker(before, right(less)) == ["gates.web:lint.files: - /web/**/*.ts"]
    gone = {"gitgates.toml": ROOT.replace('"web", ', "")}
    texts = weaker(before, right(gone))
    assert "members: - web" in texts
    assert "gates.web:lint: removed" in texts
    assert "gates.packages/ui:test: removed" in texts
    assert before.digest not in (right(less).digest, right(gone).digest)


# Extended files

SHARED = """
[gates.lint]
command = "lint"
timeout = 10
files = ["*.py"]
[gates.test]
command = "test"
[hooks.pre-commit]
gates = ["lint", "test"]
"""


def test_a_file_overrides_what_it_extends_key_by_key() -> None:
    root = "extends = ['a.toml', 'sub/b.toml']\n[gates.lint]\nfiles = ['*.js']\n"
    config = right(
        {
            "gitgates.toml": root,
            "a.toml": SHARED,
            "sub/b.toml": "extends = ['../c.toml']\n[gates.lint]\ncommand = 'b'\n",
            "c.toml": "jobs = 3\n[gates.lint]\ncommand = 'c'\ndescription = 'c'\n",
        }
    )
    lint = by_name(config)["lint"]
    assert (
        lint.program.command,
        lint.schedule.timeout_s,
        lint.selection.files,
        lint.description,
    ) == ("b", 10, ("*.js",), "c")
    assert (config.jobs, config.hooks[0].gates) == (3, ("lint", "test"))
    assert config.sources == ("gitgates.toml", "a.toml", "c.toml", "sub/b.toml")


def test_members_may_share_a_file_each_in_its_folder() -> None:
    member = "root = false\nextends = ['../shared/gates.toml']\n"
    config = right(
        {
            "pyproject.toml": "[tool.gitgates]\nmembers = ['web', 'api']\n",
            "web/gitgates.toml": member + "[gates.lint]\ntimeout = 5\n",
            "api/gitgates.toml": member,
            "shared/gates.toml": SHARED,
        }
    )
    gates = by_name(config)
    assert [*gates] == ["web:lint", "web:test", "api:lint", "api:test"]
    assert (gates["web:lint"].program.working_dir, gates["web:lint"].schedule.timeout_s) == (
        "web",
        5.0,
    )
    assert (gates["api:lint"].program.working_dir, gates["api:lint"].schedule.timeout_s) == (
        "api",
        10.0,
    )
    assert gates["api:lint"].selection.files == ("/api/**/*.py",)
    assert config.hooks[0].gates == ("web:lint", "web:test", "api:lint", "api:test")


def test_a_problem_in_a_shared_file_is_told_once() -> None:
    member = "root = false\nextends = ['../shared.toml']\n"
    said = parsed(
        {
            "gitgates.toml": "members = ['web', 'api']\n",
            "web/gitgates.toml": member,
            "api/gitgates.toml": member,
            "shared.toml": SHARED.replace("10", "'soon'"),
        }
    )[1]
    assert said == (
        'shared.toml: gates.lint.timeout: got "soon", expected seconds or "30s". Try "30s".'
    )


CIRCLES = [
    (
        {"a.toml": "extends = ['b.toml']", "b.toml": "extends = ['./a.toml']"},
        "b.toml: extends[0]: is a cycle: `a.toml` → `b.toml` → `a.toml`. Remove one of them.",
    ),
    (
        {"a.toml": "extends = ['a.toml']"},
        "a.toml: extends[0]: is a cycle: `a.toml` → `a.toml`. Remove one of them.",
    ),
    ({}, "a.toml: does not exist, or has no settings, but `gitgates.toml: extends[0]` names it"),
    ({"a.toml": "members = ['x']\n"}, f"a.toml: members: {MOVE}"),
    ({"a.toml": "root = true\n"}, f"a.toml: root: {MOVE}"),
]


@pytest.mark.parametrize(("files", "said"), CIRCLES)
def test_problems_of_extended_files(files: dict[str, str], said: str) -> None:
    assert parsed({"gitgates.toml": "extends = ['a.toml']", **files})[1] == said


def test_the_depth_is_bounded() -> None:
    files = {f"f{at}.toml": f"extends = ['f{at + 1}.toml']" for at in range(30)}
    said = parsed({"gitgates.toml": "extends = ['f0.toml']", **files})[1]
    assert said == "f8.toml: extends[0]: is more than 10 files deep. Extend it directly."


def test_many_ways_to_one_file_are_one() -> None:
    files = {f"f{at}.toml": f"extends = ['f{at + 1}.toml', 'f{at + 2}.toml']" for at in range(8)}
    ends = {"f8.toml": "jobs = 3", "f9.toml": "jobs = 2"}
    config = right({"gitgates.toml": "extends = ['f0.toml']", **files, **ends})
    assert len(config.sources) == 11


# On disk


def test_files_are_found_and_kept_parsed(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "packages/plain/a.py": "", "packages/sub/gitgates.toml": "x = 1"})
    (tmp_path / "packages/sub/.git").touch()  # a repository of its own
    cache = str(tmp_path / "state/config.marshal")
    config = load(str(tmp_path), cache)
    assert config == right(FILES)
    assert load(str(tmp_path), cache) == config
    assert inspect(str(tmp_path)) == (config, ())


EDITS = {
    "changed": ("web/gitgates.toml", WEB.replace("eslint", "oxlint")),
    "removed": ("packages/ui/pyproject.toml", None),
    "a second one": ("packages/api/gitgates.toml", UI.replace("tool.gitgates.", "")),
    "other settings": ("packages/plain/pyproject.toml", UI),
    "extended": ("shared.toml", "jobs = 9\n"),
}


@pytest.mark.parametrize(("name", "text"), EDITS.values(), ids=EDITS)
def test_the_cache_notices(tmp_path: Path, name: str, text: str | None) -> None:
    files = {**FILES, "gitgates.toml": "extends = ['shared.toml']\n" + ROOT, "shared.toml": ""}
    write(tmp_path, {**files, "packages/plain/pyproject.toml": "[project]\n"})
    cache = str(tmp_path / "state/config.marshal")
    before = load(str(tmp_path), cache)
    if text is None:
        (tmp_path / name).unlink()
    else:
        text = text.replace("[tool.gitgates]\n", "") if name.endswith("gitgates.toml") else text
        write(tmp_path, {name: text})
    after = load(str(tmp_path), cache)
    assert before
    assert after
    assert before.digest != after.digest
    assert load(str(tmp_path)) == after


def test_a_kept_configuration_is_read_without_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FILES)
    cache = str(tmp_path / "state/config.marshal")
    config = load(str(tmp_path), cache)
    monkeypatch.setattr("gitgates.config.load.parse_files", None)
    assert load(str(tmp_path), cache) == config


@pytest.mark.parametrize("link", ["web", "web/gitgates.toml", "shared", "shared/a.toml"])
@pytest.mark.parametrize("where", ["outside", "root/inside"])
def test_links_are_refused(tmp_path: Path, link: str, where: str) -> None:
    root, there = tmp_path / "root", tmp_path / where
    write(root, {**FILES, "gitgates.toml": "extends = ['shared/a.toml']\n" + ROOT})
    write(root, {"shared/a.toml": ""})
    assert inspect(str(root))[1] == ()
    there.mkdir(parents=True)
    os.rename(root / link, there / "moved")
    (root / link).symlink_to(there / "moved")
    with pytest.raises(ConfigError) as caught:
        load(str(root))
    assert f": `{link}` is a symbolic link, to {there}/moved" in caught.value.message


def test_a_star_follows_no_link(tmp_path: Path) -> None:
    write(tmp_path, {"root/gitgates.toml": "members = ['p/*']", "root/p/a/x": "", "out/b": ""})
    (tmp_path / "root/p/b").symlink_to(tmp_path / "out")
    assert [*read_files(str(tmp_path / "root"))][3:] == ["p/a/pyproject.toml", "p/a/gitgates.toml"]


@pytest.mark.parametrize(
    ("root", "loaded"), [(ROOT, {"folders"}), (ROOT.replace('"web", "packages/*"', ""), set())]
)
def test_a_hook_loads_what_members_need_only_where_there_are_any(
    tmp_path: Path, root: str, loaded: set[str]
) -> None:
    write(tmp_path, {**FILES, "gitgates.toml": root})
    load(str(tmp_path), str(tmp_path / "kept"))
    code = (
        "import sys; from gitgates.config.load import load; load(*sys.argv[1:]);"
        "print(*(name for name in sys.modules if name.startswith('gitgates.config.')))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "kept")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert {name.rpartition(".")[2] for name in done.stdout.split()} == {"load", *loaded}
