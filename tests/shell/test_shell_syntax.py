"""Which commands a line for a shell runs, and what no shell has to be asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from each_case import each_case

from gitgates.shell import syntax as shell_syntax
from gitgates.shell.starters import STARTERS, Starter
from gitgates.shell.syntax import NO_TIME, UNKNOWN, SimpleCommand, read_command_line

ENV = {"HOME": "/home/me", "DIR": "sub"}


def words(text: str) -> list[str]:
    """Return each command as one text, what is unknown as `?`."""
    return [
        " ".join(one.words).replace(UNKNOWN, "?") for one in read_command_line(text, ENV).commands
    ]


@each_case(
    ("text", "found"),
    [
        ("a b", ["a b"]),
        ("a 'b c' \"d 'e\"f\\ g", ["a b c d 'ef g"]),
        ("a && b || c; d & e | f\ng", [*"abcdefg"]),
        ("git comm\\\nit --no-ver\\\nify", ["git commit --no-verify"]),
        ("a \\\n b", ["a b"]),
        ("a # b; c", ["a"]),
        ("$'a\\x62' $\"c\"", ["ab c"]),
        (
            "a $DIR/x ${DIR} \"$DIR y\" '$DIR' ~/z ~ $NO",
            ["a sub/x sub sub y $DIR /home/me/z /home/me ?"],
        ),
        ("a ${DIR:-x} ${NO:-y} ${NO-$DIR} ${NO:=z} ${NO:?} ${DIR:?}", ["a sub y sub z ? sub"]),
        ("a ${DIR%x} ${DIR:1} ${NO:+x} ${NO:-$(b)}", ["b", "a ? ? ? ?"]),
        ("env - a b", ["env - a b", "a b"]),
        ("b | xargs -I% a %", ["b", "xargs -I% a %", "a {}"]),
        (
            "echo 'a b' | xargs -I{} sh -c {}",
            ["echo a b", "xargs -I{} sh -c {}", "sh -c {}", "a b"],
        ),
        ("X='b c'; a $X \"$X\"", ["a b c b c"]),
        ("X=b a; c $X", ["a", "c ?"]),
        ("a $(b c) `d`", ["b c", "d", "a ? ?"]),
        ("a <(b) >(c)", ["b", "c", "a ? ?"]),
        ("a 2>&- -b; exec 3<&- 4>&-", ["a -b", "exec"]),
        ("a \"$(cat <<'EOF'\nit's $(b)\nEOF\n)\"", ["cat", "a it's $(b)"]),
        ("cat <<EOF\n$(b) c\nEOF", ["b", "cat"]),
        ("a b <<X && c\ntext\nX", ["a b", "c"]),
        ("a <<X b\nX", ["a b"]),
        ("(a; { b; }) ; ! c", [*"abc"]),
        ("f() { a; }; function g { b; }; f", [*"abf"]),
        ("if a; then b; elif c; then d; else e; fi", [*"abcde"]),
        ("while a; do b; done; case $(c) in d) e;; esac", [*"abce"]),
        ("for x in 1 $DIR; do a $x; done", ["a 1", "a sub"]),
        ("for x; do a $x; done", ["a ?"]),
        ("[[ $(a) = b ]] && c", [*"ac"]),
        ("env -i -u X A=1 git b", ["env -i -u X A=1 git b", "git b"]),
        ("env -S 'a b'", ["env -S a b", "a b"]),
        (
            "sudo -u me timeout -k 5 10 nohup nice -n 3 a -b",
            [
                "sudo -u me timeout -k 5 10 nohup nice -n 3 a -b",
                "timeout -k 5 10 nohup nice -n 3 a -b",
                "nohup nice -n 3 a -b",
                "nice -n 3 a -b",
                "a -b",
            ],
        ),
        ("command a; exec b; time c", ["command a", "a", "exec b", "b", "time c", "c"]),
        ("bash -lc 'a; b' c", ["bash -lc a; b c", "a", "b"]),
        ("/bin/sh -c \"a '$DIR'\"", ["/bin/sh -c a 'sub'", "a sub"]),
        ("bash script.sh -c a", ["bash script.sh -c a", "a"]),
        ("eval a \"b c\"; trap 'd' EXIT", ["eval a b c", "a b c", "trap d EXIT", "d"]),
        ("echo a b | bash", ["echo a b", "bash", "a b"]),
        ("bash <<'EOF'\na\nEOF", ["bash", "a"]),
        ("bash <<< 'a b'", ["bash", "a b"]),
        ("cat <<EOF | sh\na\nEOF", ["cat", "sh", "a"]),
        ("xargs -n 1 -I{} a {}", ["xargs -n 1 -I{} a {}", "a {}"]),
        (
            "find . -exec a + {} ';' -ok b {} \\;",
            ["find . -exec a + {} ; -ok b {} ;", "a + {}", "b {}"],
        ),
        ("find . -exec a {} +", ["find . -exec a {} +", "a {}"]),
        ("export A=1 B; unset C", ["export A=1 B", "unset C"]),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found
    assert read_command_line(text, ENV).trouble == ""


@each_case(
    ("text", "expected"),
    [
        ("A=1 B=$DIR a", {"env": {"A": "1", "B": "sub"}}),
        ("export A=1; a", {"env": {"A": "1"}}),
        ("A=1; export A; a", {"env": {"A": "1"}}),
        ("A=1; a", {"env": {}}),
        ("env A=1 a", {"env": {"A": "1"}}),
        ("A=1 bash -c a", {"env": {"A": "1"}}),
        ("a > b 2>&1", {"writes": ("b",)}),
        ("a >> 'b c' < d", {"writes": ("b c",)}),
        ("a &> b", {"writes": ("b",)}),
        ("{ a; } >| b", {"writes": ("b",)}),
        ("> b", {"writes": ("b",)}),
        ("a <<X > b\nX", {"writes": ("b",), "stdin": ""}),
        ("a <<X\nb\nX", {"stdin": "b\n"}),
        ("cd b && cd ../c; a", {"cwd": "b/../c"}),
        ("(cd b); a", {"cwd": ""}),
        ("bash -c 'cd b'; a", {"cwd": ""}),
        ("cd; a", {"cwd": "/home/me"}),
        ("echo -n b | a", {"stdin": "b", "fed": ("b",)}),
        ("ls -l b | xargs a", {"fed": ("b",), "is_fed": True}),
        ("ls -l b | xargs env a", {"fed": ("b",), "is_fed": True}),
        ("ls -l b | a", {"fed": ("b",), "is_fed": False}),
        ("find b -exec sudo a {} +", {"fed": ("b",), "is_fed": True}),
        ("find b -name c -exec a", {"fed": ("b", "c")}),
    ],
)
def test_what_stands_around_a_command(text: str, expected: dict[str, Any]) -> None:
    last = read_command_line(text, ENV).commands[-1]
    assert {name: getattr(last, name) for name in expected} == expected


def test_what_is_known_of_a_programs_output_is_put_in() -> None:
    found = read_command_line(
        "a $(pwd)/b", {}, lambda words, _cwd: "/x\n" if words == ("pwd",) else "y"
    ).commands
    assert found[-1].words == ("a", "/x/b")


def test_an_alias_of_git_is_read_with_what_stands_around_it() -> None:
    aliases = {"ci": "commit -m 'a b'", "sh": "!a; ci", "ci2": "ci"}
    for text, found in {
        "git -C x ci -n 'c d'": [("git", "-C", "x", "commit", "-m", "a b", "-n", "c d")],
        "git sh $X": [("a",), ("ci", UNKNOWN)],
        "git ci2": [("git", "ci")],
        "git log": [],
    }.items():
        line = read_command_line(text, alias_of=lambda verb: aliases.get(verb, ""))
        assert [one.words for one in line.commands[1:]] == found


def started_by(row: Starter, program: str) -> str:
    """Return a line in which a program starts a command, in the way that a row says."""
    quoted, plain = "'git commit x'", "git commit x"
    commands = {"dashes": f"-- {plain}", "joined": quoted}
    command = "word " * row.before + commands.get(row.command, plain)
    if row.command == "none":
        command = f"{row.texts[0]} {quoted}"
    settings = "A=1 " if row.assigns else ""
    options = "".join(f"-{letter} value " for letter in row.valued)
    return f"{program} {row.verbs[0] if row.verbs else ''} {options}{settings}{command}"


@each_case("row", STARTERS)
def test_programs_that_start_others_are_followed(row: Starter) -> None:
    for program in row.names.split():
        line = read_command_line(started_by(row, program))
        commands = [one for one in line.commands if one.words == ("git", "commit", "x")]
        assert len(commands) == 1, program
        assert commands[0].env == ({"A": "1"} if row.assigns else {})


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("a 'b", "it cannot be parsed as shell commands"),
        ("a && ", "it cannot be parsed as shell commands"),
        ('bash -c "a \'b"', "it cannot be parsed as shell commands"),
        ("a <<-'X'( >", "it cannot be parsed as shell commands"),
        ("eval " * 9 + "a", "it has too many nested scripts"),
        ("a " + "<<" * 60_000, "it takes too long to parse"),
        (f"eval '{'<<' * 50_000}'; " * 2, "it takes too long to parse"),
        ("(" * 2000 + "a" + ")" * 2000, "it is too long, or nested too deeply"),
    ],
)
def test_trouble(text: str, trouble: str) -> None:
    assert read_command_line(text).trouble == trouble


def test_loops_in_loops_end() -> None:
    text = f"for x in {'a ' * 20}; do " * 6 + "b" + "; done" * 6
    assert read_command_line(text).trouble in ("it is too long, or nested too deeply", NO_TIME)


def test_a_variable_does_not_grow_without_end() -> None:
    text = "x=aaaaaaaaaa; " + "x=$x$x$x$x; " * 60 + "b $x"
    assert len(read_command_line(text).commands[-1].words[1]) == 10_000


# In a process of its own: a thread of pytest's would take the signal that the main one holds back.
UNDER_ALARM = """
import time
from gitgates.shell.syntax import parse
from gitgates.proc.alarm import set_alarm
from gitgates.proc.call import DeadlineExceeded
parse("true")  # an exception may get lost while a module is imported
for number in range(1, 21):
    try:
        set_alarm(number / 1000)
        parse("<<" * 20_000, 0.03)
        time.sleep(1)
    except DeadlineExceeded:
        print("behind it")
"""


@pytest.mark.thorough
def test_an_alarm_while_a_line_is_parsed_comes_behind_it() -> None:
    done = subprocess.run([sys.executable, "-c", UNDER_ALARM], capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"behind it\n" * 20, b"")


def test_without_a_parser_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_syntax, "_parser", lambda: None)
    assert read_command_line("a").trouble == "the parser for commands cannot be loaded"


# The limit is met at another place in each: also where the grammar is asked for a text.
AT_THE_LIMIT = """
from gitgates.shell.syntax import read_command_line
def deeper(number):
    if number:
        return deeper(number - 1)
    return read_command_line("ls||" * 1400 + "ls").trouble
print({deeper(number) for number in range(12)})
"""


def test_a_line_that_is_nested_too_deeply_ends_no_process() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_LIMIT], capture_output=True, check=False)
    assert done.stdout == b"{'it is too long, or nested too deeply'}\n", done


def test_the_packages_of_the_parser_are_not_imported_whole() -> None:
    script = (
        "import sys; from gitgates.shell.syntax import read_command_line; "
        "print(read_command_line('a b').commands[0].words, sorted({*sys.modules} & "
        "{'typing', 'tree_sitter', 'tree_sitter_bash', 'importlib.resources', 'subprocess'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, env={**os.environ}
    )
    assert done.stdout == b"('a', 'b') []\n"


def test_a_command_is_a_record() -> None:
    assert SimpleCommand().words == ()
