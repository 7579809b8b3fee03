"""Settings that would take for ever to read, or are nested without end: refused, with the place."""

from __future__ import annotations

import json
import os
import time
import tomllib

import forked
import pytest
from conftest import Repo

from gitgates.core import yaml_load
from gitgates.core.errors import ConfigError
from gitgates.core.limits import LONGEST, MOST_PARTS, parse_json, parse_toml
from gitgates.edit.json_text import parse

BOUND_S = 8.0  # on a machine that is busy; a second elsewhere. Without limits, minutes
DEEP = 100_000
DOTTED = "\n[" + ".".join("a" * DEEP) + "]\n"
KEYS = "".join(f"k{number} = 1\n" for number in range(100_000))
WIDE = "".join(f"k{number} = 1\n" for number in range(20_000))
PLACES = {
    "a key of many parts": (DOTTED, "a key of more than 16 parts (at line 4, column 2)"),
    "quoted parts": (
        "x." + " . ".join(["'a b'"] * 10_000) + " = 1",
        "a key of more than 16 parts (at line 3, column 1)",
    ),
    "arrays": ("x = " + "[" * DEEP, "nested deeper than 200 levels (at line 3, column 205)"),
    "tables": ("x = " + "{a = " * DEEP, "nested deeper than 200 levels (at line 3, column "),
    "keys without end": (KEYS, f"characters, expected at most {LONGEST}"),
    "unknown keys": (WIDE, "and 19900 more problems"),
}
EVENT = {"hook_event_name": "Stop", "session_id": "s"}


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_a_configuration_without_end_is_refused_at_once(repo: Repo, name: str) -> None:
    text, said = PLACES[name]
    repo.write("pyproject.toml", f"# gitgates\n[tool.gitgates]\n{text}")
    for verb in ("run", "agent-hook claude"):
        began = time.monotonic()
        stdin = json.dumps({**EVENT, "cwd": str(repo.path)}).encode()
        args = tuple(verb.split())
        done = forked.run(args, str(repo.path), {**os.environ}, stdin, hosts=True)
        assert time.monotonic() - began < BOUND_S
        assert done.returncode == (78 if verb == "run" else 0)
        if verb == "run":
            assert said in done.stderr.decode()
        assert b"Traceback" not in done.stderr
        assert b"internal error" not in done.stdout + done.stderr


FILES = {
    ".claude/settings.json": "[" * DEEP,
    ".claude/settings.local.json": '{"hooks": ' * DEEP,
    ".codex/config.toml": DOTTED + "[hooks]\n",
    ".gemini/settings.json": '{"a": [' * DEEP,
    "package.json": '{"simple-git-hooks": ' + "[" * DEEP,
    "lefthook.toml": DOTTED,
    "lefthook.yml": "pre-commit: " + "[" * DEEP,
    ".pre-commit-config.yaml": "repos: " + "{a: " * DEEP,
}


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "verb", ["doctor", "check", "init", "install-hooks --agent detected", "uninstall-hooks"]
)
def test_others_settings_without_end_end_no_verb_in_a_traceback(repo: Repo, verb: str) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n')
    for name, content in FILES.items():
        repo.write(name, content)
    began = time.monotonic()
    done = repo.gitgates(*verb.split())
    assert time.monotonic() - began < 2 * BOUND_S
    assert b"Traceback" not in done.stderr, done.stderr
    assert all((repo.path / name).read_text() == content for name, content in FILES.items())


def test_json_is_refused_with_its_place() -> None:
    with pytest.raises(
        ConfigError, match=r"^a\.json:3:201: is not valid JSON: nested deeper than 200"
    ):
        parse("\n\n" + "[" * DEEP, "a.json")
    with pytest.raises(ConfigError, match=r"^a\.json: it has \d+ characters, expected at most"):
        parse(f'{{"a": "{"x" * LONGEST}"}}', "a.json")
    with pytest.raises(json.JSONDecodeError, match="nested deeper than 200 levels: line 1 column"):
        parse_json(b'{"a":' * DEEP)


def test_a_key_that_stands_twice_among_many_is_found_at_once() -> None:
    keys = ", ".join(f'"k{number}": 1' for number in range(25_000))
    began = time.monotonic()
    with pytest.raises(ConfigError, match='duplicate key "k24999"'):
        parse(f'{{{keys}, "k24999": 1}}', "a.json")
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    "text", ["a: " + "[" * DEEP, "- " * DEEP, "x" * (LONGEST + 1), "? " * DEEP]
)
def test_yaml_is_refused_at_once(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"more than 100 deep|expected at most|not allowed here"):
        yaml_load.load_texts(text)
    assert time.monotonic() - began < BOUND_S


def test_what_people_write_is_far_below_the_limits() -> None:
    parts = ".".join(["a"] * MOST_PARTS)
    for text in (
        f"[{parts}]",
        f"x = '''\n{'a.b ' * 40}\n{'.' * 200}\n'''",
        f"x = [{'1.5, ' * 400}]",
        f"x = {'[' * 90}{']' * 90}",
        'x = "see a.b.c.d, or 1.2.3.4.5.6"',
    ):
        assert parse_toml(text) == tomllib.loads(text)
    deep = "[" * 150 + "]" * 150
    assert parse_json(deep) == json.loads(deep)
