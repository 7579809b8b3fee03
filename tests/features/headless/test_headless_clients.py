"""What is read from the output of an agent's client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Repo

from gitgates.hosts.headless import CLIENTS, UNREADABLE, client

CONFIG = """\
[gates.test]
command = "grep -q good a.txt"
[hooks.headless]
gates = ["test"]
[headless]
agent = "codex"
"""
# Like the real one: the tokens of a turn are those of all turns of its thread so far.
CODEX = """\
#!/bin/sh
n=$(($(cat {count} 2>/dev/null || echo 0) + 1))
echo $n > {count}
echo "$@" >> {arguments}
[ $n = 3 ] && echo good > a.txt || echo $n > a.txt
echo '{{"type":"thread.started","thread_id":"thread-1"}}'
echo '{{"type":"item.completed","item":{{"type":"agent_message","text":"turn '$n'"}}}}'
echo '{{"type":"turn.completed","usage":{{"input_tokens":'$((n * 10))',"output_tokens":'$n'}}}}'
"""


def test_tokens_of_a_resumed_thread_are_counted_once(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config(f"{CONFIG}max_tokens = 33\n")
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    program = tmp_path / "bin/codex"
    program.parent.mkdir()
    arguments = tmp_path / "arguments"
    program.write_text(CODEX.format(count=tmp_path / "count", arguments=arguments))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    done = repo.gitgates("headless", "go")
    assert done.returncode == 0, (done.stdout, done.stderr)
    document = next((repo.path / ".git/gitgates/runs").glob("*/result.json")).read_text()
    assert [turn["tokens"] for turn in json.loads(document)["headless"]["turns"]] == [11, 11, 11]
    assert arguments.read_text().splitlines() == [
        "exec --json -",
        "exec --json resume thread-1 -",
        "exec --json resume thread-1 -",
    ]


@pytest.mark.parametrize("name", CLIENTS)
def test_what_a_client_did_not_say_is_no_turn_that_ended(name: str) -> None:
    read = client(name).read
    for output in (b"", b"{", b"[]", b"[1]", b"null", b"\xff\x00\n", b"[[]]"):
        turn = read(output)
        assert (turn.session, turn.error) == ("", UNREADABLE), output


def test_an_argument_that_ends_resuming_is_refused_before_anything_is_paid(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config(f'{CONFIG}agent_args = ["--trust-folder"]\n'.replace("codex", "copilot"))
    repo.commit_all("first")
    (tmp_path / "copilot").write_text("#!/bin/sh\necho asked >> asked\n")
    (tmp_path / "copilot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    done = repo.gitgates("headless", "go")
    assert done.returncode == 64
    assert b"agent_args: --trust-folder: Copilot CLI resumes no conversation" in done.stderr
    assert not (repo.path / "asked").exists()
