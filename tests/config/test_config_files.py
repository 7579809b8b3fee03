"""Which files hold the settings, what is wrong with those files, and `gitgates check`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import forked
import pytest

from gitgates.config.keys import TOP_KEYS, tables
from gitgates.config.load import inspect, load
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config

GATE = '[gates.g]\ncommand = "true"\n'
TOOL = '[tool.gitgates.gates.g]\ncommand = "true"\n'


def write(folder: Path, **files: str | bytes) -> None:
    """Write pyproject, own and local files."""
    names = {"pyproject": "pyproject.toml", "own": "gitgates.toml", "local": "gitgates.local.toml"}
    for key, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / names[key]).write_bytes(data)


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(str(folder))
    assert caught.value.exit_status == 78
    return str(caught.value)


def loaded(folder: Path) -> Config:
    config = load(str(folder))
    assert config is not None
    return config


def test_no_file_is_no_configuration(tmp_path: Path) -> None:
    assert load(str(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [
        "[project]\n",
        "[tool.other]\n",
        "tool = 1\n# gitgates\n",
        "# gitgates\n",
        "[dependency-groups]\ndev = ['gitgates']\n",
    ],
)
def test_pyproject_without_our_table_is_no_configuration(tmp_path: Path, content: str) -> None:
    write(tmp_path, pyproject=content)
    assert load(str(tmp_path)) is None


def test_broken_pyproject_that_does_not_speak_of_us_is_not_ours_to_mend(tmp_path: Path) -> None:
    write(tmp_path, pyproject="[project")
    assert load(str(tmp_path)) is None


@pytest.mark.parametrize("content", ["[tool.gitgates]", "tool.gitgates = {}"])
def test_empty_table_is_a_configuration(tmp_path: Path, content: str) -> None:
    write(tmp_path, pyproject=content)
    assert loaded(tmp_path).sources == ("pyproject.toml",)


@pytest.mark.parametrize("pyproject", [None, "[project]\n", "[tool.other]\nx = 'gitgates'\n"])
def test_own_file(tmp_path: Path, pyproject: str | None) -> None:
    write(tmp_path, own=GATE)
    if pyproject:
        write(tmp_path, pyproject=pyproject)
    config = loaded(tmp_path)
    assert (config.sources, config.gates[0].name) == (("gitgates.toml",), "g")


def test_both_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, pyproject=TOOL, own=GATE)
    assert refusal(tmp_path) == (
        "gitgates.toml: settings are also in pyproject.toml, [tool.gitgates]\n"
        "  Use one file: move the keys of gitgates.toml to pyproject.toml, or vice versa."
    )


def test_table_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, pyproject="tool.gitgates = [1]\n")
    assert refusal(tmp_path) == "pyproject.toml: tool.gitgates: got [1], expected a table"


@pytest.mark.parametrize("shared", ["pyproject", "own", ""])
def test_local_file_beside_any_other(tmp_path: Path, shared: str) -> None:
    write(tmp_path, local='jobs = 7\n[gates.mine]\ncommand = "x"\n')
    if shared:
        write(tmp_path, **{shared: TOOL if shared == "pyproject" else GATE})
    config = loaded(tmp_path)
    assert config.jobs == 7
    assert [gate.name for gate in config.gates] == (["g", "mine"] if shared else ["mine"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"# gitgates\n[tool", "is not valid TOML: "),
        (b"# gitgates\na = 1\na = 2\n", "is not valid TOML: "),
        (b"# gitgates\na = " + b"[" * 5000, "is not valid TOML: "),
        (b"# gitgates\na = " + b"9" * 5000, "is not valid TOML: "),
        (b"# gitgates \xe9", "byte 12 is not UTF-8, which TOML requires\n  Save the file as UTF-8"),
        (b"\xef\xbb\xbf# gitgates", "starts with a byte order mark, which TOML does not allow\n"),
        (b"# gitgates\0", "is not valid TOML: "),
    ],
    ids=["broken", "twice", "deep", "long number", "latin-1", "bom", "nul"],
)
def test_file_that_cannot_be_parsed(tmp_path: Path, content: bytes, said: str) -> None:
    for file in ("pyproject.toml", "gitgates.toml", "gitgates.local.toml"):
        (tmp_path / file).write_bytes(content)
        assert refusal(tmp_path).startswith(f"{file}: {said}")
        (tmp_path / file).unlink()


def test_broken_toml_is_said_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, pyproject="[tool.gitgates]\njobs = \n")
    assert refusal(tmp_path) == (
        "pyproject.toml: is not valid TOML: Invalid value (at line 2, column 8)\n"
        "  Fix the TOML syntax there; gitgates uses no part of a file that it cannot "
        "parse."
    )


def test_folder_in_place_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    (folder / "pyproject.toml").mkdir(parents=True)
    assert refusal(folder) == (
        "pyproject.toml: cannot be read: Is a directory\n"
        f"  Look at it with: ls -ld '{folder}/pyproject.toml'"
    )


def test_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").symlink_to("gitgates.toml")
    assert refusal(tmp_path).startswith("gitgates.toml: cannot be read: Too many levels of")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    write(tmp_path, own=GATE)
    (tmp_path / "gitgates.toml").chmod(0)
    assert refusal(tmp_path).startswith("gitgates.toml: cannot be read: Permission denied\n")


def test_lines_that_end_in_carriage_returns(tmp_path: Path) -> None:
    write(tmp_path, own=(GATE + 'description = """\none\ntwo"""\n').replace("\n", "\r\n"))
    assert loaded(tmp_path).gates[0].description == "one\ntwo"


def test_root_that_is_not_there(tmp_path: Path) -> None:
    assert load(str(tmp_path / "nowhere")) is None


def test_load_lets_deferred_problems_pass_and_inspect_tells_them(tmp_path: Path) -> None:
    write(tmp_path, own="[gates.g]\n[hooks.pre-commit]\ngates = ['h']\n")
    assert loaded(tmp_path).gates[0].program.command is None
    _config, problems = inspect(str(tmp_path))
    assert [problem.deferred for problem in problems] == [True, True]


def test_load_says_all_fatal_problems_and_only_those(tmp_path: Path) -> None:
    write(tmp_path, own="jobs = true\nfoo = 1\n[gates.g]\n")
    assert refusal(tmp_path) == (
        "gitgates.toml: foo: unknown key. Known keys: "
        f"{', '.join(key.name for key in TOP_KEYS)}, gates, hooks, {', '.join(tables())}.\n"
        "gitgates.toml: jobs: got true, expected a whole number, 0 or more\n"
        "  To check it: gitgates check"
    )


def check(folder: Path, *args: str) -> tuple[int, str, str]:
    done = forked.run(("check", *args), str(folder), {**os.environ}, b"")
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_check_says_each_problem_on_its_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        pyproject='[tool.gitgates.gates.lint]\ncommand = "x"\ntimeout = "fast"\nfils = []\n'
        '[tool.gitgates.hooks.pre-commit]\ngates = ["lnt"]\n',
    )
    assert check(tmp_path) == (
        78,
        "",
        (
            "pyproject.toml: tool.gitgates.gates.lint.fils: unknown key. Did you mean `files`?\n"
            'pyproject.toml: tool.gitgates.gates.lint.timeout: got "fast", expected seconds or '
            '"30s". Try "30s".\n'
            "pyproject.toml: tool.gitgates.hooks.pre-commit.gates: gate `lnt` is not defined. "
            "Did you mean `lint`?\n"
            "gitgates: 3 problems\n"
        ),
    )
    status, said, err = check(tmp_path, "--format", "json")
    document = json.loads(said)
    assert (status, err, document["ok"], len(document["problems"])) == (78, "", False, 3)
    assert document["problems"][1] == {
        "where": "pyproject.toml: tool.gitgates.gates.lint.timeout",
        "message": 'got "fast", expected seconds or "30s"',
        "hint": 'Try "30s".',
    }


def test_check_of_a_right_configuration(tmp_path: Path) -> None:
    write(tmp_path, own=GATE, local="jobs = 2")
    assert check(tmp_path) == (
        0,
        "gitgates.toml and gitgates.local.toml: 1 gate, 0 hooks, no problems\n",
        "",
    )


def test_check_of_a_broken_file(tmp_path: Path) -> None:
    write(tmp_path, own="[")
    status, said, err = check(tmp_path)
    assert (status, said) == (78, "")
    assert err.startswith("gitgates: gitgates.toml: is not valid TOML: ")
    status, said, err = check(tmp_path, "--format", "json")
    assert (status, err, json.loads(said)["ok"]) == (78, "", False)


def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    with pytest.raises(ConfigError, match="cannot be read: is not a regular file"):
        load(str(tmp_path))


def test_a_link_to_nowhere_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="is a broken symbolic link"):
        load(str(tmp_path))


def test_a_file_in_a_folder_above_is_named_by_its_path(tmp_path: Path) -> None:
    write(tmp_path, own=GATE)
    (tmp_path / "below").mkdir()
    assert check(tmp_path / "below")[1].startswith("../gitgates.toml: 1 gate, ")
    write(tmp_path, own="jobs = 'x'\n")
    assert check(tmp_path / "below")[2].endswith("gitgates: 1 problem in ..\n")
