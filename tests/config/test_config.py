"""What the configuration says of itself: each problem with its place, its value and its remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from config_support import fatal, read

from gitgates.config.keys import (
    GATE_KEYS,
    HOOK_KEYS,
    RESERVED_GATE_NAMES,
    TOP_KEYS,
    Key,
    defaults,
    tables,
)
from gitgates.config.parse import OF_FILES
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import POLICIES
from gitgates.core.types import Config, Gate, Hook, make_gate

WHOLE = """
jobs = 3
max_output = "1 MiB"
[gates.all]
description = "everything"
command = ["a", "b"]
working_dir = "./sub/dir/"
env = { A = "b" }
timeout = "1h30m5s"
on_pass = "STOP"
on_fail = "other"
files = ["*.py"]
exclude = ["vendor/"]
pass_files = true
pass_hook_input = true
priority = "low"
writes = true
required = true
git_env = "commit"
[gates.other]
pre-commit = ["ruff"]
runner = "prek"
[gates.every]
pre-commit = true
[hooks.PreToolUse]
gates = ["all"]
strategy = "collect"
enabled_tools = []
enabled_agents = ["a"]
[hooks.Stop]
max_retries = 1
"""


BY_TABLE = [row.table for row in POLICIES if "by-table" in row.traits]  # off without it


def test_whole_configuration() -> None:
    config, said, deferred = read(WHOLE)
    assert (said, deferred) == ("", "")
    assert config._replace(digest="") == Config(
        jobs=3,
        max_output_bytes=1 << 20,
        gates=(
            make_gate(
                name="all",
                description="everything",
                command=("a", "b"),
                working_dir="sub/dir",
                env=(("A", "b"),),
                timeout_s=5405.0,
                on_pass="STOP",
                on_fail="other",
                files=("*.py",),
                exclude=("vendor/",),
                pass_files=True,
                pass_hook_input=True,
                priority="low",
                writes=True,
                required=True,
                git_env="commit",
            ),
            make_gate(name="other", pre_commit=("ruff",), runner="prek"),
            make_gate(name="every", pre_commit=()),
        ),
        hooks=(
            Hook(
                name="PreToolUse",
                gates=("all",),
                strategy="collect",
                enabled_tools=(),
                enabled_agents=("a",),
            ),
            Hook(name="Stop", max_retries=1),
        ),
        tables={name: defaults(name) for name in tables() if name not in BY_TABLE},
        sources=("gitgates.toml",),
    )


def test_digest_is_of_the_settings_and_not_of_their_places() -> None:
    one, two = read("jobs = 1")[0], read("# a comment\njobs = 1")[0]
    assert one.digest == two.digest != read("jobs = 2")[0].digest
    assert read("", "jobs = 1")[0].digest == one.digest


# key, value in TOML, the message after the place
_LEFT_OUT = "a name that the hook applies to; `!` cannot exclude a name"
BAD: list[tuple[str, str, str]] = [
    ("requires", "0.2", "got 0.2, expected version comparisons, such as"),
    ("requires", '">=0.2.*"', 'got ">=0.2.*", expected version comparisons, such as'),
    ("root", "0", "got 0, expected true or false, without quotes"),
    ("members", '"web"', 'got "web", expected an array of strings. Try ["web"].'),
    ("extends", '"a.toml"', 'got "a.toml", expected an array of strings. Try ["a.toml"].'),
    ("breaker", "10", "got 10, expected a table of the numbers `prompt` and `session`. Try"),
    (
        "breaker",
        "{ turn = 1 }",
        "got { turn = 1 }, expected only the keys `prompt` and `session`. Try",
    ),
    ("breaker", "{ prompt = 0 }", "got { prompt = 0 }, expected whole numbers, 1 or more. Try"),
    ("keep_runs", "-1", "got -1, expected a whole number, 0 or more"),
    ("artifacts_dir", '"/tmp"', 'got "/tmp", expected a folder inside the repository, relative'),
    ("cloud_hooks", '"yes"', 'got "yes", expected true or false, without quotes'),
    ("on_exhausted", '"block"', 'got "block", expected one of allow, stop'),
    ("pass_env", '"HOME"', 'got "HOME", expected an array of strings. Try ["HOME"].'),
    ("failures", "1", "got 1, expected a preset such as pytest or ruff, or a regular expression"),
    ("failures", '"+"', 'got "+", expected a preset or a regular expression. Python says: nothing'),
    ("gates.resources", '"db"', 'got "db", expected an array of strings. Try ["db"].'),
    ("gates.resources[1]", '["db", " "]', 'got " ", expected text that is not empty'),
    (
        "top.resources",
        "2",
        "got 2, expected a table of names and whole numbers. Try resources = { db = 2 }.",
    ),
    ("retry", "-1", "got -1, expected a whole number, 0 or more"),
    (
        "quarantine_until",
        '"2027-01-31"',
        'got "2027-01-31", expected a day without quotes, such as 2027-01-31',
    ),
    (
        "quarantine_until",
        "2027-01-31T12:00:00Z",
        "got 2027-01-31 12:00:00+00:00, expected a day without quotes, such as 2027-01-31",
    ),
    ("observe", "1", "got 1, expected true or false, without quotes"),
    ("metrics", "1", "got 1, expected a table of metrics by name. Try metrics = { coverage"),
    (
        "examples",
        '{ fail = ["a"] }',
        'got { fail = ["a"] }, expected a table of `fail` and `pass`. Try examples',
    ),
    ("ratchet", "1", 'got 1, expected true, false or "measure"'),
    ("tolerance", "-1", "got -1, expected a number from 0 to 1,000,000,000"),
    ("terminal", "0", "got 0, expected true or false, without quotes"),
    ("reuse", '"by-files"', 'got "by-files", expected true, false, "by-file" or "declared"'),
    ("scratch", '".coverage"', 'got ".coverage", expected an array of strings. Try [".coverage"].'),
    (
        "scratch[1]",
        '["~/x", "/home/me/x"]',
        (
            'got "/home/me/x", expected a pattern as in .gitignore. '
            'Write it relative to the root of the repository, such as "src/x.py".'
        ),
    ),
    ("inputs", '"src/"', 'got "src/", expected an array of strings. Try ["src/"].'),
    (
        "inputs",
        '["!docs/"]',
        'matches no file. Patterns with `!` only exclude what others match: put "/*" first.',
    ),
    ("env_inputs", '"LANG"', 'got "LANG", expected an array of strings. Try ["LANG"].'),
    ("reads", '"/etc/x"', 'got "/etc/x", expected an array of strings. Try ["/etc/x"].'),
    ("remote", '"yes"', 'got "yes", expected true or false, without quotes'),
    ("ignored_inputs", '"venv"', 'got "venv", expected an array of strings. Try ["venv"].'),
    (
        "ignored_inputs",
        '["../x"]',
        "got `../x`, expected a path relative to the root. Such as node_modules.",
    ),
    (
        "outputs",
        '["/tmp"]',
        "got `/tmp`, expected a path relative to the root. Such as node_modules.",
    ),
    *(
        (
            "outputs",
            f'["{path}"]',
            f"got `{path}`, expected a path relative to the root. Such as node_modules.",
        )
        for path in ("a//b", "*.xml", "a/.GIT/x")
    ),
    ("image", "1", "got 1, expected text in quotes"),
    ("weight", "0", "got 0, expected a whole number, 1 or more"),
    ("after", '"lint"', 'got "lint", expected an array of strings. Try ["lint"].'),
    ("parallel", "1", "got 1, expected true or false, without quotes"),
    ("max_age", '"old"', 'got "old", expected seconds or "30s". Try "30s".'),
    ("baseline", '"yes"', 'got "yes", expected true, false or "file"'),
    ("baseline", '"file"', 'as "file" requires `failures`'),
    ("jobs", '"many"', 'got "many", expected a whole number, 0 or more'),
    ("jobs", "-1", "got -1, expected a whole number, 0 or more"),
    ("jobs", "true", "got true, expected a whole number, 0 or more"),
    ("jobs", "1.5", "got 1.5, expected a whole number, 0 or more"),
    (
        "max_output",
        "0",
        'got 0, expected a number of bytes greater than zero, or "64 KiB", "1 MiB"',
    ),
    ("max_log", "0", 'got 0, expected a number of bytes greater than zero, or "64 KiB", "1 MiB"'),
    (
        "max_output",
        '"1 TB"',
        'got "1 TB", expected a number of bytes greater than zero, or "64 KiB", "1 MiB"',
    ),
    (
        "max_output",
        f'"{"9" * 90}"',
        f'got "{"9" * 58}…, expected a number of bytes greater than zero, or "64 KiB", "1 MiB"',
    ),
    ("description", "1", "got 1, expected text in quotes"),
    ("description", '"a\\u0000"', 'got "a\\u0000", expected text without a NUL character'),
    ("command", '""', 'got "", expected a shell command in quotes, or an array of a program'),
    ("command", "[]", "got [], expected a shell command in quotes, or an array of a program"),
    ("command[0]", "[1]", "got 1, expected text in quotes, without a NUL character"),
    (
        "command[2]",
        '["a", "b", true]',
        "got true, expected text in quotes, without a NUL character",
    ),
    ("command[0]", '[" ", "a"]', 'got " ", expected a program'),
    ("command", "true", "got true, expected a shell command in quotes, or an array of a program"),
    (
        "pre-commit",
        '"ruff"',
        'got "ruff", expected true, or an array of hook ids. Try pre-commit = ["ruff", "mypy"].',
    ),
    (
        "pre-commit",
        "[]",
        'got [], expected true, or an array of hook ids. Try pre-commit = ["ruff", "mypy"].',
    ),
    ("runner", '"precommit"', 'got "precommit", expected one of pre-commit, prek. Did you mean'),
    ("runner", "1", "got 1, expected one of pre-commit, prek"),
    ("working_dir", '"../up"', 'got "../up", expected a folder inside the repository, relative'),
    ("working_dir", '"/abs"', 'got "/abs", expected a folder inside the repository, relative'),
    ("working_dir", '" "', 'got " ", expected a folder inside the repository, relative'),
    (
        "env",
        '["A=b"]',
        'got ["A=b"], expected a table of names and strings. Try env = { NAME = "value" }.',
    ),
    ("env", "{ A = 1 }", 'got { A = 1 }, expected strings as values. Try A = "1".'),
    ("env", "{ A = true }", 'got { A = true }, expected strings as values. Try A = "true".'),
    ("env", "{ A = [] }", 'got { A = [] }, expected strings as values. Try A = "value".'),
    (
        "env",
        '{ "A=" = "b" }',
        'got { A= = "b" }, expected environment names without `=`. "A=" is not a valid name.',
    ),
    ("timeout", '"fast"', 'got "fast", expected seconds or "30s". Try "30s".'),
    ("timeout", '"3 0s"', 'got "3 0s", expected seconds or "30s". Try "30s".'),
    ("timeout", "true", 'got true, expected seconds or "30s". Try "30s".'),
    ("timeout", "0", 'got 0, expected a time greater than zero, at most one week. Try "30s".'),
    ("timeout", '""', 'got "", expected a time greater than zero, at most one week. Try "30s".'),
    ("timeout", "nan", 'got nan, expected a time greater than zero, at most one week. Try "30s".'),
    ("timeout", "inf", 'got inf, expected a time greater than zero, at most one week. Try "30s".'),
    (
        "timeout",
        '"999h"',
        'got "999h", expected a time greater than zero, at most one week. Try "30s".',
    ),
    ("timeout", "2026-01-02", 'got 2026-01-02, expected seconds or "30s". Try "30s".'),
    ("on_pass", '""', 'got "", expected CONTINUE, BLOCK, STOP, or the name of a gate'),
    ("on_fail", "false", "got false, expected CONTINUE, BLOCK, STOP, or the name of a gate"),
    ("files", '"*.py"', 'got "*.py", expected an array of strings. Try ["*.py"].'),
    (
        "files[1]",
        '["a", "./b"]',
        'got "./b", expected a pattern relative to the root, without `.` and `..`',
    ),
    (
        "exclude[0]",
        '["!../b/"]',
        'got "!../b/", expected a pattern relative to the root, without `.` and `..`',
    ),
    (
        "files",
        '"^src/"',
        (
            'got "^src/", expected an array of patterns as in .gitignore, '
            'not a regular expression. Such as ["*.py", "src/"].'
        ),
    ),
    ("files[1]", '["*.py", "!"]', 'got "!", expected a pattern such as *.py or src/'),
    ("files[1]", '["*.py", 7]', "got 7, expected text in quotes"),
    ("files[0]", '[""]', 'got "", expected text that is not empty'),
    ("exclude[0]", "[1]", "got 1, expected text in quotes"),
    (
        "types[1]",
        '["text", "!pyhton"]',
        (
            'got "!pyhton", expected a type of files that pre-commit\'s `identify` knows, such as '
            "python. Did you mean `python` or `python3` or `python2`?"
        ),
    ),
    (
        "types_or[0]",
        '["!nothing-like-it"]',
        (
            'got "!nothing-like-it", expected a type of files that pre-commit\'s `identify` '
            "knows, such as python"
        ),
    ),
    ("pass_files", '"yes"', 'got "yes", expected true or false, without quotes'),
    ("pass_hook_input", "1", "got 1, expected true or false, without quotes"),
    (
        "priority",
        '"hihg"',
        'got "hihg", expected one of critical, high, normal, low. Did you mean `high`?',
    ),
    ("writes", "[]", "got [], expected true or false, without quotes"),
    ("required", '"true"', 'got "true", expected true or false, without quotes'),
    ("git_env", '"x"', 'got "x", expected one of auto, commit, clean'),
    ("gates", '"lint"', 'got "lint", expected an array of strings. Try ["lint"].'),
    ("gates[1]", '["a", 1]', "got 1, expected text in quotes"),
    ("unstaged", '"x"', 'got "x", expected one of hide, checkout, keep'),
    ("members", '"web"', 'got "web", expected an array of strings. Try ["web"].'),
    ("verify", "1", "got 1, expected true or false, without quotes"),
    ("restage", '"yes"', 'got "yes", expected true or false, without quotes'),
    ("fail_fast", "1", "got 1, expected true or false, without quotes"),
    ("strategy", '"all"', 'got "all", expected one of sequence, collect'),
    ("strategy", "1", "got 1, expected one of sequence, collect"),
    ("enabled_tools", '"Edit"', 'got "Edit", expected an array of strings. Try ["Edit"].'),
    ("enabled_agents", "{}", "got {}, expected an array of strings"),
    *(
        (f"{key}[0]", f'["{pattern}"]', f'got "{pattern}", expected {_LEFT_OUT}')
        for key, pattern in (("enabled_agents", "a|!b"), ("enabled_tools", "!Bash"))
    ),
    ("max_retries", "1.0", "got 1.0, expected a whole number, 0 or more"),
]
REST = {
    "requires": ' ">=0.2" or ">=0.2,<1"',
    "artifacts_dir": " to its root",
    "breaker": " breaker = { prompt = 10, session = 30 }.",
    "command": " and its arguments",
    "examples": ' = { fail = ["tests/gates/bad.py"], pass = ["tests/gates/good.py"] }.',
    "failures": " to repeat at position 0.",
    "metrics": """ = { pattern = 'TOTAL.*?(\\d+)%', better = "higher" } }.""",
    "runner": " `pre-commit`?",
    "working_dir": " to its root",
}


def test_bad_values_cover_every_key() -> None:
    keys = {key.name for table in (TOP_KEYS, GATE_KEYS, HOOK_KEYS) for key in table}
    assert {name.partition("[")[0].rpartition(".")[2] for name, _value, _message in BAD} == keys


def places(key: str) -> Iterator[tuple[str, str]]:
    """Return each table that a key stands in: its TOML header, and its name in messages."""
    only, _, key = key.rpartition(".")
    if only in ("", "top") and key in {found.name for found in TOP_KEYS}:
        yield "", key
    if only in ("", "gates") and key in {found.name for found in GATE_KEYS}:
        yield "[gates.g]\n", f"gates.g.{key}"
    for found in HOOK_KEYS:
        if found.name == key:
            hook = (found.only_in or ("pre-commit",))[0]
            yield f"[hooks.{hook}]\n", f"hooks.{hook}.{key}"


def test_bad_values() -> None:
    wrong = []
    for key, value, message in BAD:
        name, bracket, entry = key.partition("[")
        for header, table in places(name):
            expected = f"gitgates.toml: {table}{bracket}{entry}: {message}"
            _config, said, _deferred = read(f"{header}{name.rpartition('.')[2]} = {value}\n")
            if said not in (expected, expected + REST.get(key, "")):
                wrong.append((key, value, said, expected))
    assert wrong == []


HUGE = "1" + "0" * 400
KNOWN = ", ".join([*(key.name for key in TOP_KEYS), "gates", "hooks", *tables()])


@pytest.mark.parametrize("key", ["timeout", "jobs", "max_output"])
def test_huge_numbers_are_no_bug(key: str) -> None:
    header = "[gates.g]\n" if key == "timeout" else ""
    _config, said, _deferred = read(f'{header}{key} = {HUGE}\ncommand = "x"')
    assert ("at most one week" in said) is (key == "timeout")


def test_value_is_shown_without_what_commands_a_terminal() -> None:
    said = fatal('jobs = "\\u001b[31m\\u009b\\u202e"')
    assert said == (
        'gitgates.toml: jobs: got "\\u001b[31m\\x9b\\u202e", expected a whole number, 0 or more'
    )


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("job = 1", "job: unknown key. Did you mean `jobs`?"),
        ("gate = {}", "gate: unknown key. Did you mean `gates`?"),
        (
            '[tool.gitgates.gates.x]\ncommand = "true"',
            "tool: unknown key. In gitgates.toml, omit `tool.gitgates.`: [gates.x].",
        ),
        ("[tool.other]", f"tool: unknown key. Known keys: {KNOWN}."),
        (
            "zzz = 1",
            f"zzz: unknown key. Known keys: {KNOWN}.",
        ),
        (
            '[gates.g]\ncommand = "x"\ntimout = 1',
            "gates.g.timout: unknown key. Did you mean `timeout`?",
        ),
        (
            '[gates.g]\ncommand = "x"\npre_commit = true',
            "gates.g.pre_commit: unknown key. Did you mean `pre-commit`?",
        ),
        (
            "[hooks.pre-commit]\nstrateegy = 1",
            "hooks.pre-commit.strateegy: unknown key. Did you mean `strategy`?",
        ),
        (
            "[hooks.pre-commit]\nmax_retries = 1",
            (
                "hooks.pre-commit.max_retries: unknown key. "
                "`max_retries` applies only to Stop, SubagentStop, TaskCompleted, "
                "TeammateIdle, headless."
            ),
        ),
        (
            "[hooks.headless]\non_exhausted = 'stop'",
            (
                "hooks.headless.on_exhausted: unknown key. "
                "`on_exhausted` applies only to Stop, SubagentStop."
            ),
        ),
        (
            "[hooks.Stop]\nenabled_tools = []",
            (
                "hooks.Stop.enabled_tools: unknown key. "
                "`enabled_tools` applies only to PreToolUse, PostToolUse, "
                "PostToolUseFailure, PostToolBatch."
            ),
        ),
        (
            '"odd\\nkey" = 1',
            f'"odd\\nkey": unknown key. Known keys: {KNOWN}.',
        ),
        ("gates = 1", "gates: got 1, expected one table per name"),
        ("hooks = []", "hooks: got [], expected one table per name"),
        (
            'gates.lint = "ruff"',
            'gates.lint: got "ruff", expected a table. Try { command = "ruff" }.',
        ),
        (
            'hooks.pre-commit = ["lint"]',
            'hooks.pre-commit: got ["lint"], expected a table. Try { gates = ["lint"] }.',
        ),
        ("hooks.pre-commit = 1", "hooks.pre-commit: got 1, expected a table"),
        (
            "[hooks.pre-comit]",
            "hooks.pre-comit: unknown hook `pre-comit`. Did you mean `pre-commit`?",
        ),
        ("[hooks.stop]", "hooks.stop: unknown hook `stop`. Did you mean `Stop`?"),
        (
            "[hooks.zzzzz]",
            (
                "hooks.zzzzz: unknown hook `zzzzz`. Known: the hooks of githooks(5), an agent's "
                "events such as Stop, headless and manual."
            ),
        ),
        (
            '[hooks."\\u001b"]',
            (
                'hooks."\\u001b": unknown hook `\\x1b`. Known: the hooks of githooks(5), an '
                "agent's events such as Stop, headless and manual."
            ),
        ),
    ],
)
def test_unknown_names_and_misplaced_values(toml: str, said: str) -> None:
    assert fatal(toml) == f"gitgates.toml: {said}"


@pytest.mark.parametrize("name", RESERVED_GATE_NAMES)
def test_reserved_gate_name(name: str) -> None:
    for written in (name, name.lower(), name.upper()):
        assert fatal(f'[gates.{written}]\ncommand = "x"') == (
            f"gitgates.toml: gates.{written}: `{written}` is the name of an action or of a "
            "built-in policy"
            ". Choose another name for the gate."
        )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ('"a,b"', 'got "a,b", expected a name without a comma. Commas separate names in GITGATES'),
        ('""', 'got "", expected a name on one line, without spaces at either end'),
        ('" "', 'got " ", expected a name on one line, without spaces at either end'),
        ('"a "', 'got "a ", expected a name on one line, without spaces at either end'),
        ('"a\\nb"', 'got "a\\nb", expected a name on one line, without spaces at either end'),
        ('"\\u001b[1m"', 'got "\\u001b[1m", expected a name on one line, without spaces'),
        ('"\\u009b1m"', 'got "\\x9b1m", expected a name on one line, without spaces'),
    ],
)
def test_odd_gate_name(name: str, said: str) -> None:
    where = name.replace("u009b", "x9b")
    assert fatal(f'[gates.{name}]\ncommand = "x"').startswith(
        f"gitgates.toml: gates.{where}: {said}"
    )


@pytest.mark.parametrize("name", ["a b", "ä", "a.b", "-x", "Überprüfung ✓", "a/b", "$(x)", "'"])
def test_free_gate_name(name: str) -> None:
    assert fatal(f'[gates."{name}"]\ncommand = "x"\n[hooks.manual]\ngates = ["{name}"]') == ""


FOREIGN = """
repos glob exclude_types file_types entry run cmd args always_run pass_filenames language id
name stages fail_fast verbose require_serial stage_fixed tags piped skip only root cwd
additional_dependencies fail_text commands depends
"""


def test_a_key_of_another_tool_is_translated() -> None:
    for key in FOREIGN.split():
        assert_is_translated(key)


def assert_is_translated(key: str) -> None:
    place = key if key == "repos" else f"gates.a.{key}"
    head = "" if key == "repos" else "[gates.a]\ncommand = 'x'\n"
    said = read(f"{head}{key} = 1\n")[1]
    assert said.startswith(f"gitgates.toml: {place}: unknown key. "), key
    hint = said.removeprefix(f"gitgates.toml: {place}: unknown key. ")
    assert not hint.startswith(("Known keys", "Did you mean"))
    # What is to be written instead is there to be written.
    known = {key.name for key in (*TOP_KEYS, *GATE_KEYS, *HOOK_KEYS)} | {"GITGATES_SKIP"}
    words = {word.partition(" = ")[0] for word in hint.split("`")[1::2]}
    assert {word for word in words if not word.startswith(("[", "sh ", "gitgates "))} <= known


def test_foreign_keys_are_translated_in_hooks_too() -> None:
    said = read("[hooks.pre-commit]\nparallel = true\nfail-fast = true\n")[1]
    parallel, fail_fast = said.splitlines()
    assert 'Write `strategy = "collect"` in the hook: its gates run side by side' in parallel
    assert "Write `fail_fast = true` in the hook" in fail_fast


def test_a_key_that_has_ended_says_what_to_write() -> None:
    assert "Say what private checkouts need in the table `worktree`" in fatal("link = ['deps']")


def test_every_hook_is_known() -> None:
    assert {hook: fatal(f"[hooks.{hook}]\ngates = []") for hook in HOOK_POINTS} == dict.fromkeys(
        HOOK_POINTS, ""
    )


OWN_KEYS = tuple(key for key in TOP_KEYS if key.field not in OF_FILES)


@pytest.mark.parametrize(
    ("keys", "record"),
    [(OWN_KEYS, Config()), (GATE_KEYS, make_gate(name="g")), (HOOK_KEYS, Hook(name="h"))],
)
def test_records_have_the_defaults_of_the_table(
    keys: tuple[Key, ...], record: Config | Gate | Hook
) -> None:
    written = {key.field: key for key in keys if key.default}
    defaults = {
        field: key.type.parse(tomllib.loads(f"value = {key.default}")["value"])
        for field, key in written.items()
    }
    fields = record.table() if isinstance(record, Gate) else record._asdict()
    assert {field: fields[field] for field in written} == defaults
    for key in keys:  # without a default in words: nothing
        assert key.default or not fields[key.field]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("resources = { db = 0 }", "resources.db: got 0, expected a whole number, 1 or more"),
        (
            'resources = { dbb = 2 }\n[gates.g]\ncommand = "x"\nresources = ["db"]',
            "resources: no gate has the resource `dbb`. Did you mean `db`?",
        ),
        (
            '[gates.g]\ncommand = "x"\nresources = ["db"]\nremote = true',
            "gates.g.resources: cannot be combined with `remote`: they belong to this machine",
        ),
        ('resources = { other = 2 }\n[gates.g]\ncommand = "x"\nresources = ["db"]', ""),
    ],
)
def test_resources_that_are_wrong(text: str, problem: str) -> None:
    _config, said, _deferred = read(text)
    assert said == (f"gitgates.toml: {problem}" if problem else "")
