"""Additions to a settings file leave every other byte of it where it was."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitgates.config import load
from gitgates.config.edit import Addition, Edit, make_edit
from gitgates.core.errors import ConfigError
from gitgates.store.files import replace_unchanged

LINT = {"description": "Linting", "command": 'ruff check "$@"', "pass_files": True}
TEST: dict[str, Any] = {"command": ["pytest", "-q"], "timeout": "10m"}
WANTED = Addition(
    gates={"lint": LINT, "test": TEST},
    hooks={"pre-commit": {"gates": ["lint"]}, "pre-push": {"gates": ["lint", "test"]}},
)
BLOCK = """\
[tool.gitgates.gates.lint]
description = "Linting"
command = 'ruff check "$@"'
pass_files = true

[tool.gitgates.gates.test]
command = ["pytest", "-q"]
timeout = "10m"

[tool.gitgates.hooks.pre-commit]
gates = ["lint"]

[tool.gitgates.hooks.pre-push]
gates = ["lint", "test"]
"""


def edit(pyproject: str | bytes | None, wanted: Addition = WANTED) -> Edit:
    content = pyproject.encode() if isinstance(pyproject, str) else pyproject
    return make_edit({"pyproject.toml": content}, wanted)


def edited(pyproject: str, wanted: Addition = WANTED) -> str:
    return edit(pyproject, wanted).after.decode()


def test_tables_go_to_the_end_of_a_file_that_has_none_of_ours() -> None:
    assert edited('[project]\nname = "x"\n') == '[project]\nname = "x"\n\n' + BLOCK


def test_missing_final_newline() -> None:
    assert edited('[project]\nname = "x"') == '[project]\nname = "x"\n\n' + BLOCK


def test_empty_file() -> None:
    assert edited("") == BLOCK


def test_crlf_stays_crlf() -> None:
    old = '[project]\r\nname = "x"\r\n'
    assert edited(old) == old + "\r\n" + BLOCK.replace("\n", "\r\n")


def test_without_pyproject_an_own_file_is_made() -> None:
    made = edit(None)
    assert (made.file, made.before) == ("gitgates.toml", None)
    assert made.after.decode() == BLOCK.replace("tool.gitgates.", "")


def test_an_own_file_is_the_target_even_beside_pyproject() -> None:
    made = make_edit({"pyproject.toml": b"[project]\n", "gitgates.toml": b"jobs = 2\n"}, WANTED)
    assert made.file == "gitgates.toml"
    assert made.after.decode() == "jobs = 2\n\n" + BLOCK.replace("tool.gitgates.", "")


def test_new_tables_go_to_the_end_and_lists_grow_where_they_are() -> None:
    old = """\
# top
[tool.gitgates.gates.format]
command = "black ."   # odd   spacing
# still about format

[tool.gitgates.hooks.pre-commit]
gates = [ "format" ]

# about ruff
[tool.ruff]
line-length = 100

# the end
"""
    block = BLOCK.replace('[tool.gitgates.hooks.pre-commit]\ngates = ["lint"]\n\n', "")
    assert edited(old) == old.replace('[ "format" ]', '[ "format", "lint" ]') + "\n" + block


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ("[]", '["x", "y"]'),
        ("[ ]", '["x", "y" ]'),
        ('["a"]', '["a", "x", "y"]'),
        ('["a",]', '["a", "x", "y"]'),
        ('[ "a" ] # ["a"]', '[ "a", "x", "y" ] # ["a"]'),
        ('[\n  "a",\n]', '[\n  "a",\n  "x",\n  "y",\n]'),
        ('[\n  "a"\n]', '[\n  "a",\n  "x",\n  "y"\n]'),
        ('[\n  "a", # one\n]', '[\n  "a", # one\n  "x",\n  "y",\n]'),
        ('[\n  "a", "b",\n]', '[\n  "a", "b", "x", "y",\n]'),
        ('[\n  "a"]', '[\n  "a",\n  "x",\n  "y"]'),
        ('[\r\n  "a"\r\n]', '[\r\n  "a",\r\n  "x",\r\n  "y"\r\n]'),
        ("[ # none\n]", '[ # none\n    "x",\n    "y"\n]'),
        ("['a']", '[\'a\', "x", "y"]'),
        ('["""a"""]', '["""a""", "x", "y"]'),
    ],
)
def test_a_list_grows_in_its_own_manner(array: str, expected: str) -> None:
    old = f"[tool.gitgates.hooks.manual]\ngates = {array}\n[tool.b]\ngates = {array}\n"
    wanted = Addition(gates={}, hooks={"manual": {"gates": ["x", "y"]}})
    assert edited(old, wanted) == old.replace(array, expected, 1)
    assert edit(old, wanted).extended == (("manual", ("x", "y")),)


def test_a_list_whose_last_comma_is_missing_before_a_comment_is_left() -> None:
    old = '[tool.gitgates.hooks.manual]\ngates = [\n\t"a" # one, "two"\n\t# tail\n]\n'
    with pytest.raises(ConfigError) as caught:
        edit(old, Addition(gates={}, hooks={"manual": {"gates": ["x"]}}))
    assert str(caught.value) == (
        "pyproject.toml: nothing can be added without rewriting its inline tables"
        "\n  Use [headers] and run this again, or add by hand:\n\n"
        '[tool.gitgates.hooks.manual]\ngates = ["a", "x"]\n'
    )


ODD = {
    "dotted in the root": 'tool.gitgates.gates.a.command = "x"\ntool.gitgates.hooks.Stop.gates=[]',
    "dotted in tool": '[tool]\ngitgates.gates.a.command = "x"\nblack.x = 1\n[z]\n',
    "dotted in ours": '[tool.gitgates]\njobs=1\ngates.a.command="x" #\nhooks.Stop.gates=["a"]\n',
    "out of order": "[tool.a]\n[project]\n[tool.gitgates]\n[x]\n[tool.b]\n[x.y]\n[tool.a.b]\n",
    "ours out of order": "[tool.gitgates.hooks.Stop]\ngates=[]\n[x]\n[tool.gitgates]\njobs=3\n",
    "super table last": "[tool.a]\nx=1\n[tool]\n",
    "quoted headers": '["tool" . \'gitgates\'."gates"."a b"] # c\ncommand="x"\n[tool . b]\n',
    "headers in text": 'x = """\n[tool.gitgates.gates.lint]\n# """\ny = [\n[1]]\n[tool.gitgates]\n',
    "our comment like text": '[tool.gitgates.gates.a]\ncommand = """x\n# """\n# c\n[b]\n',
    "array tables": "[[tool.mypy.overrides]]\nmodule='x'\n[[tool.mypy.overrides]]\nmodule='y'\n",
    "hook without gates": "[tool.gitgates.hooks.pre-commit]\nstrategy = 'sequence'\n\n[x]\n",
    "hook without anything": "[tool.gitgates.hooks.pre-commit]\n[tool.gitgates.hooks.pre-push]",
    "mixed line ends": "[a]\r\nx=1\n[tool.gitgates]\n\r\n[b]\r\n",
    "form feeds and wide": "# \u2028 é\n[a]\nx = 'é\u0085\u2029' # 😀\n[tool.gitgates]\n# \u2028\n",
    "only comments": "# hello\n\n# you\n",
    "nan and dates": "x = nan\ny = 1979-05-27T07:32:00Z\nz = 1e400\n[tool.gitgates]\n",
    "blank tail": "[tool.gitgates]\n\n\n\n",
    "spaces before": "  [tool.gitgates]\n  jobs = 4\n\n  [tool.b]\n",
}
INLINE = {
    "gates inline": '[tool.gitgates]\ngates = { a = { command = "x" } }\n[tool.ruff]\n',
    "hooks inline": '[tool.gitgates]\nhooks = { pre-commit = { gates = ["a"] }, manual = {} }\n',
    "hooks inline, tight": '[tool.gitgates]\nhooks={pre-commit={gates=["a"]}}#\n[[a]]\n',
    "ours inline": "[tool]\ngitgates = { jobs = 2 }\n",
    "ours inline, empty": "[tool]\nblack = {}\ngitgates = {}\n",
    "all inline": 'tool = {black = {x = "]"}, gitgates = {gates = {}}} # end\n[project]\nname="x"',
    "tool inline without us": "tool = { black = { a = 1 } }\n[x]\n",
}


def is_within(old: bytes, new: bytes) -> bool:
    rest = iter(new)
    return all(byte in rest for byte in old)


def outside(text: str) -> Any:
    tables = tomllib.loads(text)
    tables.get("tool", {}).pop("gitgates", None)
    return repr({name: table for name, table in tables.items() if table != {}})


@pytest.mark.parametrize("old", ODD.values(), ids=ODD)
def test_odd_files_keep_every_byte(old: str) -> None:
    made = edit(old)
    new = made.after.decode()
    assert is_within(old.encode(), made.after)
    assert outside(new) == outside(old)
    config, problems = load.parse_files({"pyproject.toml": made.after})
    assert config is not None
    assert [p for p in problems if "`a`" not in p.message] == []
    gates = {gate.name: gate for gate in config.gates}
    assert gates["lint"].program.command == LINT["command"]
    assert gates["test"].schedule.timeout_s == 600
    hooks = {hook.name: hook.gates for hook in config.hooks}
    assert hooks["pre-push"] == ("lint", "test")
    assert hooks["pre-commit"][-1] == "lint"
    again = edit(new)
    assert (again.after, again.gates, again.hooks, again.extended) == (made.after, (), (), ())


def has_problems(text: str) -> bool:
    try:
        _, problems = load.parse_files({"pyproject.toml": text.encode()})
    except ConfigError:
        return True
    return any(not problem.deferred for problem in problems)


LINES = st.lists(
    st.sampled_from(
        [
            "# c\n",
            "\n",
            "   \n",
            "x = 1\n",
            "y = [\n  [1], # ]\n]\n",
            "z = '''\n[tool.gitgates.gates.lint]\n'''\n",
            "w = {a=1}\r\n",
            "[tool.gitgates]\n",
            "jobs = 1\n",
            "[tool.gitgates.gates.a]\n",
            "command = 'true' # x\n",
            "[tool.gitgates.hooks.pre-commit]\n",
            "gates = ['a'\n# c\n]\n",
            "[tool.gitgates.hooks.manual]\n",
            "[tool]\n",
            "[tool.black]\n",
            "[[tool.many]]\n",
            "[other]\r\n",
            "[tool.gitgates.gates.a.env]\n",
        ]
    ),
    max_size=12,
).map("".join)


@given(old=LINES, cut=st.booleans())
@example(old="[[tool.many]]\n[tool.gitgates.hooks.pre-commit]\n[[tool.many]]\n", cut=False)
@pytest.mark.slow
def test_whatever_is_accepted_is_kept(old: str, *, cut: bool) -> None:
    old = old[:-1] if cut and old.endswith("\n") and not old.endswith("\r\n") else old
    try:
        made = edit(old)
    except ConfigError as error:
        refused = "nothing can be added without" in error.message
        assert refused or has_problems(old)
        return
    old_lines, new_lines = (text.replace("\r\n", "\n") for text in (old, made.after.decode()))
    rest = iter(new_lines.split("\n"))
    kept = [line for line in old_lines.rstrip("\n").split("\n") if "gates = ['a'" not in line]
    assert all(line in rest for line in kept)
    assert is_within(old.encode(), made.after)


@given(
    name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    command=st.text(st.characters(codec="utf-8"), min_size=1, max_size=30),
    env=st.dictionaries(st.text("aB_ ü'\"", min_size=1), st.text(st.characters(codec="utf-8"))),
)
@pytest.mark.slow
def test_any_text_arrives_as_it_was(name: str, command: str, env: dict[str, str]) -> None:
    wanted = Addition(gates={name: {"command": command, "env": env}}, hooks={})
    try:
        made = edit("[project]\n", wanted)
    except ConfigError:  # a name or a command that no configuration may have
        return
    config, _ = load.parse_files({"pyproject.toml": made.after})
    assert config is not None
    assert config.gates[0].program.command == command
    assert config.gates[0].program.env == tuple(env.items())


def test_what_is_there_is_left_and_named() -> None:
    old = """\
[tool.gitgates.gates.lint]
command = "flake8"

[tool.gitgates.hooks.pre-commit]
gates = ["lint"]
strategy = "collect"

[tool.gitgates.hooks.Stop]
timeout = "2m"
"""
    hooks: dict[str, dict[str, Any]] = {
        "pre-commit": {"gates": ["lint"]},
        "Stop": {"timeout": 60},
    }
    wanted = Addition(gates={"lint": LINT}, hooks=hooks)
    made = edit(old, wanted)
    assert made.after.decode() == old
    assert made.conflicts == (
        "pyproject.toml: tool.gitgates.gates.lint",
        "pyproject.toml: tool.gitgates.hooks.pre-commit.strategy",
        "pyproject.toml: tool.gitgates.hooks.Stop.timeout",
    )


def test_the_same_in_other_words_is_the_same() -> None:
    old = '[tool.gitgates.gates.t]\ncommand = "t"\ntimeout = 120\non_fail = "BLOCK"\n'
    made = edit(old, Addition(gates={"t": {"command": "t", "timeout": "2m"}}, hooks={}))
    assert (made.after.decode(), made.conflicts) == (old, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"\xef\xbb\xbf[a]\n",
            "pyproject.toml: starts with a byte order mark, which TOML does not",
        ),
        (b"[a\n", "pyproject.toml: is not valid TOML: Expected ']' at the end of a table"),
        (b"x='\xff'\n", "pyproject.toml: byte 4 is not UTF-8"),
        (b"[tool.gitgates]\njbs = 1\n", "pyproject.toml: tool.gitgates.jbs: unknown key"),
        (b"[tool]\ngitgates = 3\n", "pyproject.toml: tool.gitgates: got 3, expected a table"),
    ],
)
def test_files_with_problems_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        edit(content)
    assert str(caught.value).startswith(message)


def test_an_addition_that_would_break_the_configuration_is_refused() -> None:
    old = '[tool.gitgates.gates.a]\ncommand = "a"\non_pass = "b"\n'
    wanted = Addition(gates={"b": {"command": "b", "on_fail": "a"}}, hooks={})
    with pytest.raises(ConfigError, match="its chain of actions is a cycle: `a` → `b` → `a`"):
        edit(old, wanted)


def test_undefined_gates_are_added_and_told() -> None:
    made = edit("", Addition(gates={}, hooks={"Stop": {"gates": ["nowhere"]}}))
    assert [problem.message for problem in made.problems] == ["gate `nowhere` is not defined"]


def save(root_abs: str, made: Edit) -> None:
    replace_unchanged(root_abs, made.file, made.before, made.after)


def raw(root: Path) -> Mapping[str, bytes | None]:
    return load.read_files(str(root))


def test_saving_keeps_mode_and_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    real = tmp_path / "kept" / "real.toml"
    real.write_bytes(b"[project]\n")
    real.chmod(0o640)
    (tmp_path / "pyproject.toml").symlink_to("kept/real.toml")
    save(str(tmp_path), make_edit(raw(tmp_path), WANTED))
    assert (tmp_path / "pyproject.toml").readlink() == Path("kept/real.toml")
    assert real.read_text() == "[project]\n\n" + BLOCK
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [entry.name for entry in (tmp_path / "kept").iterdir()] == ["real.toml"]


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save(str(tmp_path), make_edit(raw(tmp_path), WANTED))
    finally:
        os.umask(old)
    made = tmp_path / "gitgates.toml"
    assert stat.S_IMODE(made.stat().st_mode) == 0o640


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[a]\n")
    made = make_edit(raw(tmp_path), WANTED)
    file.write_text("[b]\n")
    with pytest.raises(ConfigError, match="was changed by another process in the meantime"):
        save(str(tmp_path), made)
    assert file.read_text() == "[b]\n"


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gitgates.toml: cannot be written: No such file"):
        save(str(tmp_path / "gone"), make_edit({}, WANTED))


@pytest.mark.parametrize("old", INLINE.values(), ids=INLINE)
def test_what_cannot_be_inserted_is_said_to_be_added_by_hand(old: str) -> None:
    with pytest.raises(ConfigError, match="nothing can be added without") as caught:
        edit(old)
    assert caught.value.hint
    assert caught.value.hint.startswith(
        f"Use [headers] and run this again, or add by hand:\n\n{BLOCK[:90]}"
    )
