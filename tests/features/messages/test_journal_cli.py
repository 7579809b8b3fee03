"""`gitgates journal`: what people and agents type, and what they are told."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo

ID = re.compile(r"\b[0-9a-z]{8}\b(?=  \d{4}-)")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)


def post(repo: Repo, *args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    """Post a message; return its id."""
    done = repo.gitgates("journal", "post", *args, stdin=stdin, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().removesuffix("\n")


def told(repo: Repo, *args: str) -> tuple[str, str]:
    """Return what a call says on standard output and error, without ids and times."""
    done = repo.gitgates("journal", *args)
    assert done.returncode == 0, done.stderr
    output = TIME.sub("TIME", ID.sub("ID", done.stdout.decode()))
    return output, done.stderr.decode()


def data(repo: Repo, *args: str) -> dict[str, Any]:
    done = repo.gitgates("journal", *args, "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    document: dict[str, Any] = json.loads(done.stdout)
    assert document.pop("version") == 1
    return document


def refused(repo: Repo, *args: str, stdin: bytes = b"") -> str:
    done = repo.gitgates("journal", *args, stdin=stdin)
    assert (done.returncode, done.stdout) == (64, b"")
    return done.stderr.decode()


def log(repo: Repo) -> Path:
    return repo.path / ".git/gitgates/messages.jsonl"


@pytest.mark.slow
def test_where_nothing_is_posted_that_is_said(repo: Repo) -> None:
    assert told(repo) == told(repo, "topics") == ("no messages\n", "")
    assert told(repo, "read", "a") == ("", "gitgates: no message in `a`\n")
    assert told(repo, "search", "a") == ("", "gitgates: no matching message\n")
    assert told(repo, "export") == ("", "")
    assert data(repo, "read", "a") == {"messages": [], "total": 0}
    assert data(repo, "search", "a") == {"messages": [], "total": 0}
    assert data(repo, "topics") == {"topics": []}
    assert not log(repo).exists()


def test_messages_are_posted_and_read(repo: Repo) -> None:
    repo.write("a")
    repo.commit_all("first")
    first = post(repo, "build", "-m", "fine", "-m", "a second\nparagraph")
    repo.write("a", "changed")
    env = {"CLAUDE_CODE_SESSION_ID": "s1"}
    second = post(repo, "build", "--ref", first, stdin="piped é😀\n\n".encode(), env=env)
    third = post(repo, "build/ci", "-m", "-", stdin=b"also piped\r\n")
    head = repo.head()[:12]
    output, errors = told(repo, "read", "build")
    assert (output.split("\n\n"), errors) == (
        [
            f"ID  TIME  build\n  main {head}, clean",
            "    fine",
            "    a second\n    paragraph",
            f"ID  TIME  build\n  main {head}, dirty; session s1; refs {first}",
            "    piped é😀",
            "",
        ],
        "",
    )
    assert told(repo, "show", third.upper()) == (
        f"ID  TIME  build/ci\n  main {head}, dirty\n\n    also piped\n\n",
        "",
    )
    assert [one["id"] for one in data(repo, "read", "build")["messages"]] == [first, second]
    assert [one["id"] for one in data(repo, "read", "build/")["messages"]] == [third]
    shown = data(repo, "show", second)["messages"][0]
    assert shown.pop("time")
    assert shown == {
        "id": second,
        "topic": "build",
        "session": "s1",
        "agent": "",
        "commit": repo.head(),
        "branch": "main",
        "dirty": True,
        "refs": [first],
        "data": {},
        "text": "piped é😀",
    }
    output, errors = told(repo)
    assert (output.splitlines()[1:], errors) == (
        ["       1  TIME  build/ci", "       2  TIME  build"],
        "",
    )
    listed = data(repo, "topics")["topics"]
    assert [(one["topic"], one["messages"]) for one in listed] == [("build/ci", 1), ("build", 2)]


@pytest.mark.slow
def test_the_newest_are_shown_and_the_others_counted(repo: Repo) -> None:
    ids = [post(repo, "t", "-m", str(number)) for number in range(4)]
    output, errors = told(repo, "read", "t", "--limit", "1")
    assert (output.split()[-1], errors) == ("3", "gitgates: 3 older; --limit 4 shows all\n")
    found = data(repo, "read", "t", "--limit", "2")
    assert ([one["text"] for one in found["messages"]], found["total"]) == (["2", "3"], 4)
    assert len(data(repo, "read", "t", "--limit", "0")["messages"]) == 4
    later = data(repo, "read", "t", "--since", ids[1].upper())
    assert [one["text"] for one in later["messages"]] == ["2", "3"]
    assert told(repo, "read", "t", "--since", ids[3]) == (
        "",
        f"gitgates: no message in `t` after {ids[3]}\n",
    )
    assert refused(repo, "read", "t", "--since", "zzz").startswith("gitgates: no message `zzz`\n")


@pytest.mark.slow
def test_messages_are_searched(repo: Repo) -> None:
    post(repo, "review/parser", "-m", "the parser\n\tfails on " + "an empty file " * 40)
    post(repo, "build", "-m", "word " * 100 + "Pârser " + "word " * 100)
    output, errors = told(repo, "search", "parser", "--limit", "1")
    assert output.startswith("ID  TIME  review/parser\n    the parser fails on an empty file an")
    assert output.endswith("…\n")
    assert len(output.splitlines()) == 2
    assert errors == "gitgates: 1 more; --limit 2 shows all\n"
    found = data(repo, "search", "pars*", "--topic", "build")
    assert found["total"] == 1
    assert re.fullmatch(r"…(word )+Pârser( word)+…", found["messages"][0]["snippet"])
    assert told(repo, "search", "--topic", "review/", "parser", '"empty file"')[0] == output
    assert told(repo, "search", "no", "such")[1] == "gitgates: no matching message\n"
    assert refused(repo, "search", "--", '-"') == (
        'gitgates: `-"` contains no search term\n  Use words, "a phrase", or a prefix: pars*\n'
    )


@pytest.mark.slow
def test_the_export_is_the_log_without_what_is_torn(repo: Repo, tmp_path: Path) -> None:
    post(repo, "t", "-m", "first é")
    post(repo, "t", "-m", "second")
    whole = log(repo).read_bytes()
    log(repo).write_bytes(whole.replace(b"\n", b"\ngarbage\n", 1) + whole[:20])
    done = repo.gitgates("journal", "export")
    said = f"gitgates: {log(repo)}: 2 lines are damaged or of an unknown version; skipped\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, whole, said)
    target = tmp_path / "out.jsonl"
    assert told(repo, "export", "-o", str(target)) == ("", said)
    assert target.read_bytes() == whole
    before = log(repo).read_bytes()
    assert (
        "is the message log itself"
        in repo.gitgates(
            "journal", "export", "-o", ".git/gitgates/../gitgates/messages.jsonl"
        ).stderr.decode()
    )
    assert log(repo).read_bytes() == before
    done = repo.gitgates("journal", "export", "-o", "no/such/folder")
    assert done.returncode == 73
    assert done.stderr.decode().endswith("cannot be written: No such file or directory\n")
    for verb in (["read", "t"], ["topics"]):
        assert told(repo, *verb)[1] == said


@pytest.mark.slow
def test_what_anybody_posted_commands_no_terminal(repo: Repo) -> None:
    text = b"a\x1b[2Jb\x1b]0;title\x07\x1b[31mred\x1b[0m \x9b \xe2\x80\xaeturned\r\nlast\x08"
    post(repo, "t \u202eturned", stdin=text)
    log(repo).write_bytes(
        log(repo)
        .read_bytes()
        .replace(b'"topic": "t', b'"topic": "t\\u001b[2J\\n\\u009b')
        .replace(b'"branch": "main', b'"branch": "\\u001b[2Jmain\\ud800')
    )
    for verb in (["topics"], ["read", "t/"], ["search", "red"], ["search", "last"]):
        done = repo.gitgates("journal", *verb, "--format", "text")
        shown = done.stdout.decode() + done.stderr.decode()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), shown
    message_id = json.loads(log(repo).read_bytes())["id"]
    output = told(repo, "show", message_id)[0]
    assert output.endswith("\n\n    abred \ufffd \\u202eturned\n    last\\x08\n\n")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", output)


def test_a_terminal_that_cannot_show_a_character(repo: Repo) -> None:
    post(repo, "é", "-m", "😀 text")
    done = repo.gitgates("journal", "read", "é", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xe9\n" in done.stdout
    assert b"    \\U0001f600 text\n" in done.stdout


@pytest.mark.parametrize(
    ("args", "stdin", "why"),
    [
        (["post", "a"], b"", "the text is empty"),
        (["post", "a", "-m", ""], b"", "the text is empty"),
        (["post", "a"], b" \n \n", "the text is empty"),
        (["post", "a"], b"a\0b", "a NUL character"),
        (["post", "a"], b"x" * (1024 * 1024 + 1), "has 1048577 bytes; the maximum is 1048576"),
        (["post", "a"], b"x" * (3 << 20), "is longer than 1048576 bytes"),
        (["post", "a\nb", "-m", "x"], b"", r"`a\nb` has a control character"),
        (["post", "", "-m", "x"], b"", "the topic is empty"),
        (["post", b"a\xff", "-m", "x"], b"", r"`a\udcff` is not valid UTF-8"),
        (["post", "a", "-m", "x", "--ref", "no\x1b[2J"], b"", r"no message `no\x1b[2J` to refer"),
        (["show", "nope\x1b[2J"], b"", r"no message `nope\x1b[2J`"),
        (["read"], b"", "Missing argument 'TOPIC'"),
        (["pots"], b"", "No such command 'pots'"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_call_that_makes_no_sense(repo: Repo, args: list[Any], stdin: bytes, why: str) -> None:
    assert why in refused(repo, *args, stdin=stdin)
    assert not log(repo).exists()


@pytest.mark.slow
def test_a_mebibyte_can_be_posted(repo: Repo) -> None:
    text = "é" * (512 * 1024)
    message_id = post(repo, "big", stdin=f"{text}\r\n".encode())
    assert data(repo, "show", message_id)["messages"][0]["text"] == text


def test_without_a_pipe_nothing_is_waited_for(repo: Repo) -> None:
    ours, theirs = pty.openpty()
    for stdin in (theirs, None):
        done = subprocess.run(
            [
                "sh",
                "-c",
                'exec "$0" -m gitgates journal post a' + ("" if stdin else " <&-"),
                sys.executable,
            ],
            cwd=repo.path,
            stdin=stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (
            64,
            b"gitgates: the message is empty\n  Use -m TEXT, or pipe it in.\n",
        )
    os.close(ours)
    os.close(theirs)


def test_a_topic_that_is_nearly_one(repo: Repo) -> None:
    post(repo, "review/parser", "-m", "x")
    assert told(repo, "read", "review/praser") == (
        "",
        "gitgates: no message in `review/praser`. Did you mean `review/parser`?\n",
    )


def test_outside_of_a_repository(tmp_path: Path) -> None:
    done = Repo(tmp_path).gitgates("journal", "topics")
    assert done.returncode == 74
    assert b"not a git repository" in done.stderr


@pytest.mark.slow
def test_a_place_that_cannot_be_written(repo: Repo) -> None:
    repo.write(".git/gitgates", "a file")
    for args in (["post", "t", "-m", "x"], ["read", "t"], ["search", "x"], ["topics"]):
        done = repo.gitgates("journal", *args)
        assert (done.returncode, done.stdout) == (73, b"")
        assert done.stderr.startswith(f"gitgates: {log(repo)}: ".encode())


@pytest.mark.slow
def test_a_linked_worktree_shares_it(repo: Repo, tmp_path: Path) -> None:
    repo.commit("first", "--allow-empty")
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    message_id = post(Repo(tmp_path / "side"), "t", "-m", "from the side")
    shown = data(repo, "read", "t")["messages"][0]
    assert (shown["id"], shown["branch"]) == (message_id, "side")
    assert data(repo, "search", "side")["total"] == 1


@pytest.mark.slow
def test_topics_complete(repo: Repo) -> None:
    def complete(*args: str) -> list[str]:
        env = {
            "_GITGATES_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("gitgates", "journal", *args)),
            "COMP_CWORD": str(len(args) + 1),
        }
        done = repo.gitgates(env=env)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().split("\n")[:-1] if done.stdout.strip() else []

    assert complete("read", "") == []
    for topic in ("build", "review/a b", "review/c"):
        post(repo, topic, "-m", "x")
    assert complete("read", "rev") == ["plain,review/a b", "plain,review/c"]
    assert complete("post", "b") == ["plain,build"]
    assert complete("search", "x", "--topic", "b") == ["plain,build"]
    repo.write(".git/gitgates/messages.jsonl", "garbage")
    assert complete("read", "") == []


@pytest.mark.slow
def test_a_reader_may_go_away(repo: Repo) -> None:
    for _ in range(3):
        post(repo, "t", stdin=b"word " * 20_000)
    for verb in ("read t", "export", "search word"):
        script = f'"$0" -m gitgates journal {verb} | head -c 1; true'
        done = repo.ask("sh", "-c", script, sys.executable)
        assert (len(done.stdout), done.stderr) == (1, b"")
