"""The verbs of the trace: blame, show, verify, export, prune."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from agent_support import Agent, begin
from conftest import Repo
from test_trace_records import ON, shell, write

from gitgates.files.memory import Memory
from gitgates.files.points import Author, points, record
from gitgates.git.repo import find_repo
from gitgates.store.log import utc
from gitgates.verbs.approval import new_token

# As published in the README of https://github.com/cursor/agent-trace (CC BY 4.0).
PUBLISHED = Path(__file__).resolve().parents[2] / "schemas/agent_trace.json"
BODY = [f"    value_{number} = compute({number})" for number in range(6)]


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def blame(repo: Repo, path: str) -> list[tuple[str, str, str]]:
    """Return of each block: its lines, the session of its writer, and how that was found."""
    done = repo.gitgates("trace", "blame", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["blocks"]
    return [(f"{one['start']}-{one['end']}", one["session"], one["how"]) for one in found]


@pytest.fixture
def agents(repo: Repo) -> tuple[Agent, Agent]:
    return begin(repo, ON), Agent(repo, "s2")


def test_each_line_has_its_writer(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, two = agents
    repo.write("a.py", text("def person():", "    pass"))
    write(one, "a.py", text("def person():", "    pass", "def f():", *BODY), "Edit")
    write(two, "a.py", text("def person():", "    pass", "def g():", *BODY, "end"), "Edit")
    recorded = [("3-3", "s2"), ("4-9", "s1"), ("10-10", "s2")]
    expected = [("1-2", "", ""), *((*known, "recorded") for known in recorded)]
    assert blame(repo, "a.py") == expected
    (repo.path / "a.py").rename(repo.path / "b.py")
    assert blame(repo, "b.py") == expected
    shell(one, """cp b.py 'a "c"\n\\é.py'""")
    assert blame(repo, 'a "c"\n\\é.py') == expected


def test_what_a_person_changes_since_is_nobodys(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, two = agents
    write(one, "a.py", text("def f():", *BODY))
    write(two, "a.py", text("def f():", *BODY[:3], "    own = 1", *BODY[3:]), "Edit")
    repo.git("add", ".")
    repo.git("commit", "-qm", "a")
    repo.git("gc", "-q")
    repo.write("a.py", text("# by a person", "def f():", *BODY[:3], "    own = 1", *BODY[4:]))
    assert blame(repo, "a.py") == [
        ("1-1", "", ""),
        ("2-5", "s1", "recorded"),
        ("6-6", "s2", "recorded"),
        ("7-8", "s1", "recorded"),
    ]


def test_ids_are_those_of_a_repository_with_sha_256(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "sha256"
    repo.git("init", "-q", "--object-format=sha256", str(path))
    repo = Repo(path)
    one, two = begin(repo, ON), Agent(repo, "s2")
    write(one, "a.py", text("def f():", *BODY))
    shell(two, "echo end >> a.py && ln -s a.py link")
    done = repo.gitgates("trace", "show", "--format", "json")
    _written, *added = [f for record in json.loads(done.stdout)["records"] for f in record["files"]]
    repo.git("add", ".")
    ids = {name: repo.git("rev-parse", f":{name}") for name in ("a.py", "link")}
    assert {len(blob) for blob in ids.values()} == {64}
    assert {file["path"]: file["blob"] for file in added} == ids
    repo.write("a.py", text("# by a person", "def f():", *BODY[:3], *BODY[4:], "end"))
    blocks = [("1-1", "", ""), ("2-7", "s1", "recorded"), ("8-8", "s2", "recorded")]
    assert blame(repo, "a.py") == blocks


def test_a_block_that_has_moved(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    repo.write("a.py", text("def f():"))
    write(one, "a.py", text("def f():", *BODY), "Edit")
    repo.write("a.py", text("def f():", "    pass"))
    repo.write("other.py", text("class A:", *BODY, "end"))
    moved = [("1-1", "", ""), ("2-7", "s1", "recorded"), ("8-8", "", "")]
    assert blame(repo, "other.py") == moved


def test_what_came_back_has_its_writers(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, two = agents
    shell(one, "git checkout -qb feat")
    write(one, "a.py", text("def f():", *BODY))
    write(two, "a.py", text("def f():", *BODY, "end"), "Edit")
    shell(one, "git add . && git commit -qm a")
    shell(one, "git checkout -q -")
    shell(two, "git checkout -q feat")
    assert blame(repo, "a.py") == [("1-7", "s1", "recorded"), ("8-8", "s2", "recorded")]


def test_what_came_from_another_worktree(repo: Repo) -> None:
    begin(repo, ON)
    repo.git("worktree", "add", "-q", "-b", "other", "../linked")
    there = Repo(repo.path.parent / "linked")
    Agent(there, "s3").start()
    write(Agent(there, "s3"), "a.py", text("def f():", *BODY))
    there.git("add", ".")
    there.git("commit", "-qm", "a")
    repo.git("merge", "-q", "other")
    assert blame(repo, "a.py") == [("1-7", "s3", "recorded")]


def test_what_is_older_than_the_memory(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    write(one, "a.py", text("def f():", *BODY))
    write(one, "a.py", text("def f():", *BODY, "end"), "Edit")
    opened = find_repo(str(repo.path), dict(os.environ))
    shutil.rmtree(Memory(opened).folder_abs)
    record(opened, Author())
    assert blame(repo, "a.py") == [("1-8", "", "older")]
    last = repo.gitgates("trace", "blame", "a.py").stdout.decode().splitlines()[-1]
    [point] = points(opened)
    assert last.split() == [
        "1-8",
        "-",
        *["nobody", "in", "the", "trace"],
        f"{utc(point.time_s)}",
        "older",
    ]


def test_blame_in_a_partial_clone_starts_no_program(
    repo: Repo, agents: tuple[Agent, Agent]
) -> None:
    one, _two = agents
    write(one, "a.py", text("def f():", *BODY))
    blob = one_record(repo)["files"][0]["blob"]
    for path in (repo.path / ".git").rglob(f"{blob[:2]}/{blob[2:]}"):
        path.unlink()
    repo.write("a.py", text("# by a person", "def f():", *BODY))
    started = repo.path / ".git/started"
    repo.git("config", "core.sshCommand", f"touch '{started}'; false")
    repo.git("config", "remote.origin.url", "ssh://localhost/a")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "extensions.partialClone", "origin")
    assert blame(repo, "a.py") == [("1-1", "", ""), ("2-8", "s1", "recorded")]
    assert not started.exists()
    repo.ask("git", "cat-file", "-e", blob)  # which fetches what is not here
    assert started.exists()


def test_blame_as_text(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    write(one, "a.py", text(*BODY), agent_id="a" * 20)
    with (repo.path / "a.py").open("a") as file:
        file.write("person\n")
    repo.git("add", ".")
    done = repo.gitgates("trace", "blame", "a.py")
    time = one_record(repo)["time"][:19]
    assert done.stdout.decode() == (
        "lines  intent  session              tool   time                  how\n"
        f"1-6    -       s1/aaaaaaaa          Write  {time}Z  recorded\n"
        "7      -       nobody in the trace\n"
    )


def one_record(repo: Repo) -> dict[str, Any]:
    done = repo.gitgates("trace", "show", "--format", "json")
    return dict(json.loads(done.stdout)["records"][0])


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("none.py", "none.py is not a file in "),
        (".git", ".git is not a file in "),
        ("../x", "../x is not a file in "),
    ],
)
def test_what_has_no_lines_to_blame(repo: Repo, file: str, said: str) -> None:
    done = repo.gitgates("trace", "blame", file)
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr.decode().startswith(f"gitgates: {said}")


def test_show(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, two = agents
    write(one, "a.py", text("a"))
    write(two, "sub/b.py", text("b"))
    shell(one, "mv sub/b.py c.py")
    lines = repo.gitgates("trace", "show").stdout.decode().splitlines()
    assert [line[24:] for line in lines] == [
        "s1 Write: create a.py",
        "s2 Write: create sub/b.py",
        "s1 Bash: rename c.py from sub/b.py",
    ]
    shown = repo.gitgates("trace", "show", "--session", "s2", "--path", "sub/b.py").stdout.decode()
    assert shown.splitlines() == [lines[1]]
    none = repo.gitgates("trace", "show", "--intent", "INT-001")
    assert (none.returncode, none.stderr) == (0, b"gitgates: no matching records\n")


def test_verify(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    for number in range(3):
        write(one, "a.py", text(str(number)))
    done = repo.gitgates("trace", "verify")
    assert (done.returncode, done.stdout) == (0, b"3 records, all intact\n")
    path = repo.path / ".git/gitgates/trace/ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"a.py", b"b.py", 1))
    done = repo.gitgates("trace", "verify")
    assert done.returncode == 1
    first, _second = done.stdout.decode().splitlines()
    assert first == "line 1 is damaged: it does not match its own hash"


def test_an_agent_trace_record(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    repo.write("a.py", text("def f():", "    x = 1", "    y = 2"))
    write(one, "a.py", text("def f():", "    z = 3"))
    assert repo.gitgates("trace", "export").returncode == 0
    [line] = (repo.path / ".orchestration/agent_trace.jsonl").read_text().splitlines()
    exported, ours = json.loads(line), one_record(repo)
    assert exported.pop("tool")["name"] == "gitgates"
    digest = ours["files"][0]["blocks"][0]["sha256"]
    ranges = [{"start_line": 2, "end_line": 2, "content_hash": f"sha256:{digest}"}]
    assert exported == {
        "version": "0.1.0",
        "id": ours["id"],
        "timestamp": ours["time"],
        "vcs": {"type": "git", "revision": repo.git("rev-parse", "HEAD")},
        "files": [
            {
                "path": "a.py",
                "conversations": [{"contributor": {"type": "ai"}, "ranges": ranges}],
            }
        ],
        "metadata": {"gitgates": ours},
    }
    done = repo.gitgates("trace", "export", "--output", "-")
    assert json.loads(done.stdout) == json.loads(line)


def test_what_is_exported_is_valid_by_the_published_schema(
    repo: Repo, agents: tuple[Agent, Agent]
) -> None:
    one, two = agents
    validate = fastjsonschema.compile(json.loads(PUBLISHED.read_text()))
    write(one, "a.py", text("def f():", *BODY))
    write(two, "a.py", text("def f():", *BODY[2:]), "Edit")  # a block that was removed
    shell(one, "rm a.py; : > empty.py")
    repo.git("commit", "-qm", "no commit of these", "--allow-empty")
    write(two, "b.py", text("last"))
    lines = repo.gitgates("trace", "export", "--output", "-").stdout.splitlines()
    assert len(lines) >= 4
    for line in lines:
        validate(json.loads(line))


def test_export_does_not_leave_the_repository(repo: Repo, tmp_path: Path) -> None:
    (repo.path / ".orchestration").symlink_to(tmp_path / "elsewhere")
    done = repo.gitgates("trace", "export")
    assert done.returncode == 64
    assert b"nothing was written" in done.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_export_replaces_files_alone(repo: Repo, tmp_path: Path) -> None:
    folder, fifo = tmp_path / "folder", tmp_path / "fifo"
    folder.mkdir()
    os.mkfifo(fifo)  # such as /dev/stdout
    for path in (folder, fifo):
        done = repo.gitgates("trace", "export", "--output", str(path))
        assert done.returncode == 64
        assert f"{path} is not a regular file: nothing was written" in done.stderr.decode()
    assert fifo.is_fifo()
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    target.write_text("old")
    assert repo.gitgates("trace", "export", "--output", str(link)).returncode == 0
    assert (link.is_symlink(), target.read_text()) == (True, "")


def prune_it(repo: Repo, *args: str, env: dict[str, str] | None = None) -> Any:
    token = new_token(find_repo(str(repo.path), dict(os.environ)), "trace prune")
    return repo.gitgates("trace", "prune", *args, "--token", token, env=env)


def test_prune(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, _two = agents
    for number in range(3):
        write(one, f"{number}.py", text(str(number)))
    assert repo.gitgates("trace", "prune").returncode == 64
    refused = repo.gitgates("trace", "prune", "--keep", "1")
    assert refused.returncode == 64
    assert b"`gitgates trace prune` must be run by a person" in refused.stderr
    assert prune_it(repo, "--older-than", "1").stdout == b"0 records removed\n"
    done = prune_it(repo, "--keep", "1", env={"CLAUDE_CODE_SESSION_ID": "s9"})
    assert done.stdout == b"2 records removed\n"
    said = repo.gitgates("trace", "verify").stdout.decode().splitlines()
    by = "session s9, with a token of Test"
    assert said[0][20:] == f": {by} removed 2 records"
    assert said[1] == "1 record, all intact"
    ledger = (repo.path / ".git/gitgates/ledger.jsonl").read_text()
    assert f'"what": "trace-pruned", "by": "{by}", "records": 2' in ledger
    path = repo.path / ".git/gitgates/trace/ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"2.py", b"3.py", 1))
    done = prune_it(repo, "--keep", "0")
    assert done.returncode == 73
    assert b"the ledger is damaged, so nothing was removed: line 2 is damaged" in done.stderr


def test_what_was_there_before_keeps_its_writers(repo: Repo, agents: tuple[Agent, Agent]) -> None:
    one, two = agents
    own = text("seed = 1", *BODY)
    write(one, "seed.py", own, "Edit")
    write(two, "seed.py", text("seed = 1"), "Edit")
    write(two, "seed.py", own, "Edit")
    assert blame(repo, "seed.py") == [("1-1", "", "older"), ("2-7", "s1", "recorded")]
    repo.write("seed.py", text("seed = 1", "by_a_person = compute(1)"))
    one.prompt()
    shell(one, "git stash -q")
    shell(one, "git stash pop -q")
    assert blame(repo, "seed.py") == [("1-1", "", "older"), ("2-2", "", "")]
