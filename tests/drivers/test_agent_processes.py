"""An agent's hook as the client starts it: always status 0, and an answer that it takes or none.

However odd the place, the streams and the payload are, and without a traceback.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import forked
import pytest
from claude_support import (
    GUARD_S,
    HOOK,
    RECORDED,
    SRC,
    answer_of,
    damaged,
    end,
    facts,
    fire,
    journal,
    placed,
    recorded,
    start,
)
from each_case import each_case

from gitgates.hosts import AGENTS

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

CONFIG = """\
[gates.check]
command = "echo no; exit 1"
[hooks.PreToolUse]
gates = ["check"]
[hooks.PostToolUse]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
[undo]
enabled = false
"""


@pytest.fixture
def repo(repo: Repo) -> Repo:
    """Return a repository whose gate always fails."""
    repo.config(CONFIG)
    repo.write("a.txt", "bye\n")
    return repo


def sh(repo: Repo, text: str, raw: bytes, **env: str) -> tuple[bytes, str]:
    """Run a shell command in which $HOOK is our hook, with a payload as its input."""
    whole = {**os.environ, "PYTHONPATH": str(SRC), "HOOK": " ".join(HOOK), **env}
    done = subprocess.run(
        ("sh", "-c", text),
        cwd=repo.path,
        env=whole,
        input=raw,
        capture_output=True,
        check=False,
        timeout=GUARD_S,
    )
    err = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, err
    assert "Traceback" not in err
    assert "internal error" not in err
    return done.stdout, err


@pytest.mark.thorough
def test_two_hundred_odd_payloads(repo: Repo) -> None:
    draw = random.Random(7)
    all_of_them = [
        json.dumps(one).encode()
        for _name, payload in RECORDED
        for one in damaged(placed(payload, repo.path))
    ]
    odd = draw.sample(all_of_them, 150)
    odd += [raw[: draw.randrange(len(raw))] for raw in draw.sample(all_of_them, 25)]
    for raw in draw.sample(all_of_them, 25):
        place = draw.randrange(len(raw))
        odd.append(raw[:place] + draw.randbytes(3) + raw[place + 1 :])

    def run(raw: bytes) -> tuple[bytes, str]:
        return end(start(repo, raw))

    with ThreadPoolExecutor(4) as pool:
        for raw, (out, err) in zip(odd, pool.map(run, odd), strict=True):
            assert "internal error" not in err, raw
            answer_of(event_of(raw), out)


def event_of(raw: bytes) -> str:
    try:
        event = json.loads(raw.decode("utf-8", "replace"))["hook_event_name"]
    except (ValueError, TypeError, KeyError):
        return ""
    return event if isinstance(event, str) else ""


def test_an_event_that_we_do_not_know_is_passed_and_told_once(repo: Repo) -> None:
    answer, said = end(start(repo, recorded(repo, "Stop", hook_event_name="Novelty")))
    assert json.loads(answer).keys() == {"systemMessage"}
    assert "`Novelty` is unknown to Claude Code" in said
    assert end(start(repo, recorded(repo, "Stop", hook_event_name="Novelty")))[0] == b""


@each_case("args", [(), ("gpt",), ("",), ("--help",), ("CLAUDE", "claude")])
def test_without_the_name_of_an_agent_it_passes_and_says_so(
    repo: Repo, args: tuple[str, ...]
) -> None:
    done = forked.run(("agent-hook", *args), str(repo.path), dict(os.environ), b"", hosts=True)
    wanted = f"gitgates: `agent-hook` requires the name of an agent: {', '.join(AGENTS)}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", wanted.encode())


def test_switched_off_it_reads_nothing(repo: Repo) -> None:
    assert end(start(repo, b"{", GITGATES="0")) == (b"", "")


def test_nothing_comes(repo: Repo) -> None:
    said = "gitgates: the payload cannot be read: no input on standard input\n"
    assert end(start(repo, b"")) == (b"", said)


def test_a_folder_that_is_not_absolute_is_not_the_agents(repo: Repo) -> None:
    found = fire(repo, recorded(repo, "PostToolUse", "Edit", cwd=".", tool_input={}))
    assert found["decision"] == "block"
    assert str(repo.path) in facts(repo, "round")[0]["run"]


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
def test_a_tool_that_works_on_a_pipe(repo: Repo, event: str) -> None:
    os.mkfifo(repo.path / "pipe")
    path = {"file_path": f"{repo.path}/pipe"}
    assert fire(repo, recorded(repo, event, "Edit", tool_input=path))


@pytest.mark.slow
def test_a_transcript_that_is_a_pipe(repo: Repo) -> None:
    fire(repo, recorded(repo, "SessionStart"))
    repo.write("a.txt", "changed\n")
    os.mkfifo(repo.path.parent / "transcript")
    payload = recorded(repo, "Stop", background_tasks=[], stop_hook_active=True)
    payload["transcript_path"] = f"{repo.path.parent}/transcript"
    assert [fire(repo, payload)["decision"] for _ in range(2)] == ["block", "block"]


@pytest.mark.slow
def test_an_input_that_nobody_closes_is_not_waited_for(repo: Repo) -> None:
    raw = json.dumps(recorded(repo, "PreToolUse", "Write")).encode()
    read_fd, write_fd = os.pipe()
    os.write(write_fd, raw)
    try:
        done = subprocess.run(
            HOOK,
            cwd=repo.path,
            env={**os.environ, "PYTHONPATH": str(SRC)},
            stdin=read_fd,
            capture_output=True,
            check=False,
            timeout=GUARD_S,
        )
    finally:
        os.close(read_fd)
        os.close(write_fd)
    assert done.returncode == 0
    assert "hookSpecificOutput" in answer_of("PreToolUse", done.stdout)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_payload_beyond_all_reason(repo: Repo) -> None:
    process = start(repo, b'{"x": "' + b"x" * (65 << 20))
    said = "gitgates: the payload is larger than 64 MiB; nothing was checked\n"
    assert end(process) == (b"", said)


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("megabytes", [2, 20])
def test_a_large_payload(repo: Repo, megabytes: int) -> None:
    content = {"file_path": f"{repo.path}/a.txt", "content": "é\n" * (megabytes << 17)}
    found = fire(repo, recorded(repo, "PostToolUse", "Write", tool_input=content))
    assert found["decision"] == "block"


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(repo: Repo, closed: str) -> None:
    fire(repo, recorded(repo, "SessionStart"))
    raw = json.dumps(recorded(repo, "PostToolUse", "Edit")).encode()
    out, _err = sh(repo, f"$HOOK {closed}", raw)
    if closed == "2>&-":
        assert answer_of("PostToolUse", out)["decision"] == "block"
    else:
        assert out == b""
    if "<" not in closed:
        assert [one["outcome"] for one in facts(repo, "round")] == ["blocked"]


def test_nobody_reads_the_answer(repo: Repo) -> None:
    process = start(repo, recorded(repo, "PostToolUse", "Edit"))
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    process.stderr.close()
    assert process.wait(GUARD_S) == 0
    assert [one["outcome"] for one in facts(repo, "round")] == ["blocked"]


def test_a_folder_that_is_gone(repo: Repo, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    raw = json.dumps(recorded(repo, "Stop", cwd=str(gone))).encode()
    out, err = sh(repo, f"cd '{gone}' && rmdir '{gone}' && $HOOK", raw)
    assert (out, err) == (b"", "gitgates: the current folder no longer exists\n")


def test_no_repository(repo: Repo, tmp_path: Path) -> None:
    raw = json.dumps(recorded(repo, "Stop", cwd=str(tmp_path))).encode()
    out, err = sh(repo, f"cd '{tmp_path}' && $HOOK", raw)
    assert out == b""
    assert err.startswith(f"gitgates: {tmp_path}: not a git repository")


def test_a_repository_without_a_working_tree(repo: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    repo.git("init", "-q", "--bare", str(bare))
    raw = json.dumps(recorded(repo, "Stop", cwd=str(bare))).encode()
    out, err = sh(repo, f"cd '{bare}' && $HOOK", raw)
    assert out == b""
    assert "this repository has no working tree" in err


def test_nothing_is_known_of_the_session(repo: Repo) -> None:
    fire(repo, {"hook_event_name": "PreToolUse"})
    assert [fact["what"] for fact in journal(repo, "unknown.session")] == [
        "event",
        "snapshot",
        "watched",
        "rules",
        "round",
    ]


ENCODINGS = [{}, {"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("env", ENCODINGS, ids=["utf-8", "C", "ascii"])
@pytest.mark.parametrize("name", ["two words", 'it\'s "here"', "Übung ☃", "$HOME `x`;"])
def test_any_folder_and_any_locale(repo: Repo, name: str, env: dict[str, str]) -> None:
    inner = type(repo).init(repo.path / name)
    inner.config(
        '[gates.check]\ncommand = \'echo "é $1" >&2; exit 1\'\nfiles = ["*.txt"]\n'
        'pass_files = true\n[hooks.PostToolUse]\ngates = ["check"]\n[undo]\nenabled = false\n'
    )
    inner.write("ä b.txt", "x\n")
    path = {"file_path": f"{inner.path}/ä b.txt"}
    found = fire(inner, recorded(inner, "PostToolUse", "Edit", tool_input=path), **env)
    assert "é ä b.txt" in found["reason"]


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("env", ENCODINGS, ids=["utf-8", "C", "ascii"])
@pytest.mark.parametrize("is_escaped", [True, False])
def test_a_file_name_that_is_no_text(repo: Repo, is_escaped: bool, env: dict[str, str]) -> None:  # noqa: FBT001 - a case of the table
    repo.config(
        '[gates.check]\ncommand = "cat"\nfiles = ["*.txt"]\npass_files = true\n'
        'on_pass = "BLOCK"\n[hooks.PostToolUse]\ngates = ["check"]\n[undo]\nenabled = false\n'
    )
    name = os.fsdecode(b"caf\xe9.txt")
    repo.write(name, "found\n")
    payload = recorded(repo, "PostToolUse", "Edit", tool_input={"file_path": f"{repo.path}/{name}"})
    raw = json.dumps(payload, ensure_ascii=is_escaped).encode("utf-8", "surrogateescape")
    out, err = end(start(repo, raw, **env))
    assert "internal error" not in err
    assert "found" in answer_of("PostToolUse", out)["reason"]
