"""Text of others commands no terminal, hides nothing from a person, tells an agent no secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import forked
import pytest
from conftest import Repo
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.clean import plain, sanitise, visible

RED = b"\x1b[31m"
RESET = b"\x1b[0m"
COLOUR = re.compile(rb"\x1b\[[0-9:;]*m")
# Controls but tab and newline; and C1 as UTF-8 has it. What is left of C1 are continuation bytes.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What nobody sees: bidi, zero width, tags and the like.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufe00-\ufe0f"
    "\ufeff\U000e0000-\U000e0fff]"
)
PIECES = st.sampled_from(
    [
        *(b"\x1b", b"[", b"]", b"P", b"\\", b"\x07", b"m", b"0;1", b"?25", b"l", b"2J", b"\x9b"),
        *(b"\xc2", b"\xc2\x9b", b"\n", b"\r", b"\x08", b"\xe2\x82\xac", b"a", b" ", b"31", b"(B"),
    ]
)
OUTPUT = st.one_of(st.binary(), st.lists(PIECES).map(b"".join))


@pytest.mark.parametrize(
    ("output", "plain"),
    [
        (b"", b""),
        (b"plain \xe2\x9c\x93\n\ttext\n", b"plain \xe2\x9c\x93\n\ttext\n"),
        (b"\xff latin \xe9\n", b"\xff latin \xe9\n"),
        (b"a\x1b]0;title\x07b", b"ab"),
        (b"a\x1b]52;c;aGk=\x1b\\b", b"ab"),
        (b"\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\.", b"link."),
        (b"a\x1bP+q544e\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e", b"abcde"),
        (b"a\x1b]0;never ends\nb", b"a0;never ends\nb"),
        (b"a\x1b]0;cut short by\x1b[2Jb", b"a0;cut short byb"),
        (b"a\x1b[2J\x1b[H\x1b[1;1Hb\x1b[?1049hc\x1b[6nd\x1b[2 qe", b"abcde"),
        (b"a\x1b[>4;1mb\x1b[?4mc", b"abc"),
        (b"a\x1b[2\nJb", b"a\nJb"),
        (b"a\x1bcb\x1b7c\x1b(Bd\x1b#8e", b"abcde"),
        (b"a\x1b", b"a"),
        (b"a\x1b\x1b[2Jb\x1b\xe2\x9c\x93", b"ab\xe2\x9c\x93"),
        (b"a\x1b[", b"a"),
        (b"a\xc2\x9b2Jb\x9b2Jc", rb"a\x9b2Jb\x9b2Jc"),
        (b"\x07\x08\x0b\x0c\x0e\x00\x7f", rb"\x07\x08\x0b\x0c\x0e\x00\x7f"),
        (b"a\r\nb\r\r\nc\rd", b"a\nb\nc\nd"),
    ],
)
def test_what_is_no_colour(output: bytes, plain: bytes) -> None:
    assert sanitise(output, colour=False) == plain
    assert sanitise(output, colour=True) == plain


@pytest.mark.parametrize("colour", [b"\x1b[31m", b"\x1b[m", b"\x1b[38;5;1m", b"\x1b[4:3m"])
def test_colours_stay_where_they_are_taken(colour: bytes) -> None:
    assert sanitise(b"a" + colour + b"b", colour=True) == b"a" + colour + b"b" + RESET
    assert sanitise(b"a" + colour + b"b", colour=False) == b"ab"


@given(OUTPUT)
def test_nothing_that_commands_gets_through(output: bytes) -> None:
    without = sanitise(output, colour=False)
    assert COLOUR.sub(b"", sanitise(output, colour=True)) == without
    assert not CONTROL.search(without.decode("utf-8", "replace"))
    lone = {ord(char) - 0xDC00 for char in without.decode("utf-8", "surrogateescape")}
    assert not lone & set(range(0x80, 0xA0))


VISIBLE = st.characters(
    categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u115f\u1160\u3164\uffa0"
)


@given(st.text(VISIBLE))
def test_text_stays_as_it_is(text: str) -> None:
    assert sanitise(text.encode(), colour=True) == text.encode()
    assert visible(text) == text
    assert plain(text) == text


@pytest.mark.parametrize("text", ["⚠️ ok", "👩\u200d💻", "می\u200cخواهم", "❤️\u200d🔥"])
def test_what_shapes_visible_text_stays(text: str) -> None:
    assert (visible(text), plain(text)) == (text, text)


@given(st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs", "Mn", "L"])))
def test_nothing_is_hidden(text: str) -> None:
    shapes = set("\u200c\u200d\ufe0e\ufe0f")
    for shown in (visible(text), plain(text)):
        assert not HIDDEN.search("".join(char for char in shown if char not in shapes))
        assert not re.search("[\x00-\x7f][\u200c\u200d\ufe0e\ufe0f]", shown)


@pytest.fixture(name="rude")
def _rude(repo: Repo) -> Repo:
    repo.config(
        "[gates.rude]\n"
        "command = '''printf '\\033]0;t\\007\\033[31mred\\033[2J\\rall is well\\n'; exit 1'''\n"
        "[hooks.pre-commit]\ngates = ['rude']\n"
    )
    repo.git("add", "pyproject.toml")
    return repo


def test_of_a_run_by_hand(rude: Repo) -> None:
    done = rude.gitgates("run")
    assert b"\n  | red\n  | all is well\ngitgates pre-commit: blocked" in done.stdout
    done = rude.gitgates("run", env={"FORCE_COLOR": "1"})
    assert b"\n  | " + RED + b"red\n  | all is well" + RESET + b"\n" in done.stdout
    assert b"\x1b" not in COLOUR.sub(b"", done.stdout)


def entry(repo: Repo, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Do what a host starts, without starting a program."""
    return forked.run(args, str(repo.path), {**os.environ}, stdin, hosts=True)


def test_of_a_hook(rude: Repo) -> None:
    done = entry(rude, "git-hook", str(rude.path / "no-shim"), "pre-commit")
    assert b"\n  | red\n  | all is well\n" in done.stderr
    assert b"\x1b" not in done.stderr


def test_the_log_has_it_as_it_was(rude: Repo) -> None:
    rude.gitgates("run")
    (log,) = Path(rude.path / ".git/gitgates/runs").rglob("*.log")
    assert log.read_bytes() == b"\x1b]0;t\x07\x1b[31mred\x1b[2J\rall is well\n"


def test_a_path_that_a_gate_changes(repo: Repo) -> None:
    repo.config(
        "[gates.rude]\nwrites = true\ncommand = 'echo x | tee -a a*b'\n"
        "[hooks.pre-commit]\ngates = ['rude']\n"
    )
    repo.write("a\x1b[2Jb", "1\n")
    repo.git("add", "-A")
    done = entry(repo, "git-hook", str(repo.path / "no-shim"), "pre-commit")
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr
    assert done.stderr.count(rb"a\x1b[2Jb") == 2


EVIL = "safe\u202e\u2066\u200b\U000e0041\U000e0042\x9b2J\x1b[8m\x1b]0;t\x07"
SHOWN = r"safe\u202e\u2066\u200b\U000e0041\U000e0042\x9b2J\x1b[8m\x1b]0;t\x07"


def toml(text: str) -> str:
    """Return text as a TOML string."""
    escaped = "".join(f"\\U{ord(char):08x}" if not "!" <= char <= "Z" else char for char in text)
    return f'"{escaped}"'


@pytest.fixture(name="evil")
def _evil(repo: Repo) -> Repo:
    """Return a repository whose configuration and gates write what nobody sees."""
    prints = f"printf %s '{EVIL}'; exit 1"
    repo.config(
        f"[gates.{toml('g' + chr(0x202E) + 'x')}]\ndescription = {toml(EVIL)}\n"
        f"command = {toml(prints)}\nenv = {{ {toml(EVIL)} = 'x' }}\n"
        f"[gates.second]\ndescription = {toml(EVIL)}\ncommand = [{toml(EVIL)}]\n"
        f"working_dir = {toml('d' + EVIL)}\n"
        f"[hooks.pre-commit]\nstrategy = 'collect'\n"
        f"gates = [{toml('g' + chr(0x202E) + 'x')}, 'second']\n"
        f"[hooks.Stop]\ngates = [{toml('g' + chr(0x202E) + 'x')}]\n"
    )
    return repo


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ["explain", "pre-commit"],
        ["explain", "--for-agent"],
        ["run"],
        ["run", "--junit", "/dev/stderr"],
        ["doctor"],
        ["check"],
        ["explain", f"no{EVIL}"],
        ["journal", "show", f"no{EVIL}"],
    ],
    ids=lambda args: " ".join(args)[:20],
)
def test_no_verb_writes_what_nobody_sees(evil: Repo, args: list[str]) -> None:
    for colour in ({}, {"FORCE_COLOR": "1"}) if args[0] in ("explain", "run") else ({},):
        done = evil.gitgates(*args, env=colour)
        said = COLOUR.sub(b"", done.stdout + done.stderr).decode()
        assert not HIDDEN.search(said)
        ours = [line for line in done.stdout.split(b"\n") if not line.startswith(b"  | ")]
        assert b"\x1b[8m" not in b"\n".join(ours)  # a gate may colour its own lines as it likes
        assert said


def test_what_is_hidden_in_the_configuration_is_shown(evil: Repo) -> None:
    said = evil.gitgates("explain", "pre-commit").stdout.decode()
    assert f"checks    {SHOWN}\n" in said


def test_a_problem_of_the_configuration_shows_what_stands_there(repo: Repo) -> None:
    repo.config(f"[gates.g]\ncommand = 'true'\ntimeout = {toml(EVIL)}\n{toml(EVIL)} = 1\n")
    done = repo.gitgates("check")
    assert done.returncode == 78
    assert not HIDDEN.search((done.stdout + done.stderr).decode())
    assert rb"\u202e" in done.stderr
    repo.write("pyproject.toml", f"[tool.gitgates]\nx = {EVIL}\n")
    repo.git("add", "pyproject.toml")
    done = entry(repo, "git-hook", "none", "pre-commit")
    assert done.returncode == 78
    assert not HIDDEN.search((done.stdout + done.stderr).decode())


def test_what_is_left_of_a_run(evil: Repo) -> None:
    evil.git("add", "pyproject.toml")
    entry(evil, "git-hook", "none", "pre-commit")
    (summary,) = evil.path.glob(".git/gitgates/runs/*/summary.md")
    assert not HIDDEN.search(summary.read_text())
    assert not HIDDEN.search(evil.gitgates("runs").stdout.decode())


def test_an_agent_is_told_only_what_a_person_sees(evil: Repo) -> None:
    evil.commit_all("first")
    said = b""
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        evil.write("a.txt", event)
        payload = {
            "session_id": "s",
            "cwd": str(evil.path),
            "hook_event_name": event,
            "prompt": "x",
        }
        told = entry(evil, "agent-hook", "claude", stdin=json.dumps(payload).encode())
        said += told.stdout
        assert not HIDDEN.search(told.stderr.decode())
        for text in re.findall(r'"(?:[^"\\]|\\.)*"', told.stdout.decode()):
            assert not HIDDEN.search(json.loads(text))
    assert b"safe" in said
    assert b'"block"' in said
