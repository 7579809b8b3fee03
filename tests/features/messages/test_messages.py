"""The message log: what is posted is found again, whoever posts at the same time or is killed."""

from __future__ import annotations

import datetime as dt
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SRC, Repo
from hypothesis import given
from hypothesis import strategies as st
from together import run_together

from gitgates.core.errors import GitError, StateError, UsageError
from gitgates.git.repo import find_repo
from gitgates.store import log, messages
from gitgates.store.log import utc
from gitgates.store.messages import Message, id_of, normalise_id, number_of
from gitgates.verbs.repository import post_message

HEAD = """
import os, sys
from gitgates.store import messages
state = ".git/gitgates"
args = sys.argv[1:]
"""


def state_of(repo: Repo) -> str:
    return find_repo(str(repo.path), {}).shared_state_abs


def post_draft(repo: Repo, draft: Message) -> Message:
    """Post a message as the verbs do, with what is checked out."""
    message_id = post_message(find_repo(str(repo.path), dict(os.environ)), draft)
    return next(one for one in read_all(repo) if one.id == message_id)


def post(repo: Repo, topic: str, text: str = "text", refs: tuple[str, ...] = ()) -> Message:
    return post_draft(repo, Message(topic=topic, text=text, refs=refs))


def read_all(repo: Repo, topic: str = "") -> tuple[Message, ...]:
    found = messages.read_log(state_of(repo)).messages
    return tuple(one for one in found if messages.is_in(one.topic, topic))


def log_of(repo: Repo) -> Path:
    return Path(messages.file_abs(state_of(repo)))


def texts(repo: Repo, topic: str = "") -> list[str]:
    return [one.text for one in read_all(repo, topic)]


def start(repo: Repo, program: str, *args: str) -> subprocess.Popen[bytes]:
    """Start a Python program in the repository."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{HEAD}{program}", *args],
        cwd=repo.path,
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[bytes]) -> bytes:
    output, errors = process.communicate(b"\n", timeout=120)
    assert process.returncode == 0, errors
    return output


def test_what_is_posted_is_read_and_found(repo: Repo) -> None:
    state = state_of(repo)
    first = post(repo, "build", "fine")
    draft = Message(
        topic="review/parser",
        text="two\nlines\t😀",
        session="s1",
        agent="a1",
        data={"tree": "abc", "counts": [1, {"x": None}]},
        refs=(first.id, first.id.upper()),
    )
    second = post_draft(repo, draft)
    assert second == Message(
        id=second.id,
        time=second.time,
        topic="review/parser",
        text="two\nlines\t😀",
        session="s1",
        agent="a1",
        branch="main",
        data={"tree": "abc", "counts": [1, {"x": None}]},
        refs=(first.id,),
    )
    assert read_all(repo) == (first, second)
    assert read_all(repo, "review/parser") == (second,)
    assert messages.find(state, second.id) == second
    assert messages.find(state, f" {first.id.upper()}") == first
    for nothing in ("", "nope", "build", '"', "\ud800", first.id[:-1]):
        assert messages.find(state, nothing) is None


def test_a_line_of_the_log_is_one_object(repo: Repo) -> None:
    message = post(repo, "tøpic", "text")
    assert json.loads(log_of(repo).read_bytes()) == {
        "v": 1,
        "id": message.id,
        "time": message.time,
        "topic": "tøpic",
        "session": "",
        "agent": "",
        "commit": "",
        "branch": "main",
        "dirty": False,
        "refs": [],
        "data": {},
        "text": "text",
    }


def test_no_log_has_no_messages(repo: Repo) -> None:
    assert read_all(repo) == ()
    assert messages.find(state_of(repo), "x") is None
    assert not log_of(repo).parent.exists()


def test_a_topic_is_exact_and_one_with_a_slash_is_all_below(repo: Repo) -> None:
    for topic in ("a", "a/b", "a/b/c", "ab", "A"):
        post(repo, topic, topic)
    assert texts(repo, "a") == ["a"]
    assert texts(repo, "a/") == ["a/b", "a/b/c"]
    assert texts(repo, "a/b/") == ["a/b/c"]
    assert texts(repo, "x") == []
    assert texts(repo) == ["a", "a/b", "a/b/c", "ab", "A"]


def test_a_message_says_where_the_repository_stood(repo: Repo) -> None:
    def standing() -> tuple[str, str, bool]:
        message = post(repo, "t")
        return message.commit, message.branch, message.dirty

    assert standing() == ("", "main", False)
    repo.write("a", "1")
    assert standing() == ("", "main", True)  # untracked
    repo.commit_all("first")
    first = repo.head()
    assert standing() == (first, "main", False)
    repo.write("a", "2")
    assert standing() == (first, "main", True)
    repo.git("checkout", "-q", "-f", "--detach")
    assert standing() == (first, "", False)
    repo.git("checkout", "-q", "-b", "feature/(detached)é")
    assert standing() == (first, "feature/(detached)é", False)
    repo.git("config", "status.showUntrackedFiles", "no")
    repo.write("new/folder/file")
    assert standing() == (first, "feature/(detached)é", True)


def test_a_branch_that_is_no_utf_8(repo: Repo) -> None:
    repo.write(".git/HEAD", b"ref: refs/heads/a\xffb\n")
    assert post(repo, "t").branch == "a\ufffdb"


def test_what_git_cannot_compare_counts_as_dirty(repo: Repo) -> None:
    repo.write(".git/index", "garbage")
    assert post(repo, "t").dirty


def test_without_git_nothing_is_posted(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo.path))
    with pytest.raises(GitError, match="git could not be run"):
        post(repo, "t")
    assert not log_of(repo).exists()


def test_worktrees_share_the_log(repo: Repo, tmp_path: Path) -> None:
    repo.commit("first", "--allow-empty")
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Repo(tmp_path / "side")
    there = post(side, "t", "from the side")
    here = post(repo, "t", "from the main one", refs=(there.id,))
    assert (there.branch, here.branch) == ("side", "main")
    assert read_all(side) == read_all(repo) == (there, here)
    assert log_of(side) == log_of(repo) == repo.path / ".git/gitgates/messages.jsonl"


def test_only_the_owner_may_read_it(repo: Repo) -> None:
    umask = os.umask(0)
    try:
        post(repo, "t")
    finally:
        os.umask(umask)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (log_of(repo), log_of(repo).parent)]
    assert modes == [0o600, 0o700]


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "the topic is empty"),
        (" / ", "the topic is empty"),
        ("a\nb", r"`a\\nb` has a control character or a second line"),
        ("a\n", "a control character or a second line"),
        ("a\0", r"`a\\x00` has a control"),
        ("\x1b[2J", "a control"),
        ("a\x9b2J", "a control"),
        ("a\u2028b", "or a second line"),
        ("a/", "an empty part"),
        ("/a", "an empty part"),
        ("a//b", "an empty part"),
        (" a", "a leading or trailing space"),
        ("a/ b", "a leading or trailing space"),
        ("a\udcff", r"`a\\udcff` is not valid UTF-8"),
        ("a" * 201, "has 201 characters; the maximum is 200"),
    ],
)
def test_a_topic_that_makes_no_sense(repo: Repo, topic: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        post(repo, topic)
    assert refused.value.hint
    assert not log_of(repo).exists()


@pytest.mark.parametrize(
    "topic", ["a", "a b/c d", "é😀/👨\u200d👩\u200d👧", "שלום/مرحبا", "e\u0301", '"', "a" * 200]
)
def test_any_other_topic_is_one(repo: Repo, topic: str) -> None:
    message = post(repo, topic)
    assert read_all(repo, topic) == (message,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the text is empty"),
        (" \n\t", "the text is empty"),
        ("a\0b", "a NUL character"),
        ("é" * (512 * 1024) + "x", "has 1048577 bytes; the maximum is 1048576"),
    ],
    ids=lambda value: value[:10],
)
def test_a_text_that_makes_no_sense(repo: Repo, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        post(repo, "t", text)
    assert not log_of(repo).exists()


def test_any_other_text_comes_back_as_it_was(repo: Repo) -> None:
    said = [
        "é e\u0301 😀 👨\u200d👩\u200d👧",
        "שלום \u202e",
        "\x1b[31m\r\n\t\x9b",
        "é" * (512 * 1024),
    ]
    ids = [post(repo, "t", text).id for text in said]
    assert texts(repo) == said
    assert [message.text for one in ids if (message := messages.find(state_of(repo), one))] == said


def test_what_is_no_unicode_is_replaced(repo: Repo) -> None:
    assert post(repo, "t", "a\udcffb\ud83d\ude00\ud800").text == "a\ufffdb😀\ufffd"


def test_a_ref_must_exist(repo: Repo) -> None:
    with pytest.raises(UsageError, match="no message `nope` to refer to"):
        post(repo, "t", refs=("nope",))
    assert not log_of(repo).exists()


def test_many_refs_are_looked_for_at_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    state, read, lengths = state_of(repo), messages.read_newest, list[int]()
    ids = tuple(messages.post(state, Message("build", str(number))).id for number in range(30))
    monkeypatch.setattr(messages, "_NEWEST_BYTES", log_of(repo).stat().st_size // 3)

    def counted(path: str, most: int) -> bytes:
        lengths.append(most)
        return read(path, most)

    monkeypatch.setattr(messages, "read_newest", counted)
    assert messages.post(state, Message("build", "all", refs=ids)).refs == ids
    assert len(lengths) == 2  # the newest ones, and the log


def test_torn_lines_and_garbage_are_left_out_and_counted(repo: Repo) -> None:
    first = post(repo, "t", "first")
    whole = log_of(repo).read_bytes()
    odd = [
        *(b"garbage", b"[1]", b"null", b"\xff\xfe", b"[" * 100_000, b"{}"),
        whole.replace(b'"v": 1', b'"v": 2').strip(),
        *(whole.replace(b'"refs": []', b'"refs": ' + refs).strip() for refs in (b"5", b"[5]")),
        whole.replace(b'"data": {}', b'"data": []').strip(),
        whole.replace(b'"text": "first"', b'"text": 5').strip(),
        whole.replace(first.id.encode(), b"").strip(),
        whole.replace(first.time.encode(), b"1999-13-99T99:99:nan").strip(),
    ]
    log_of(repo).write_bytes(b"\n\n".join([whole.strip(), *odd]) + b"\n" + whole[:-20])
    assert texts(repo) == ["first"]
    assert messages.read_log(state_of(repo)).left_out == len(odd) + 1
    second = post(repo, "t", "second")
    assert number_of(second.id) > number_of(first.id)
    assert texts(repo) == ["first", "second"]
    assert messages.find(state_of(repo), second.id) == second


def test_a_last_line_without_its_end_is_found(repo: Repo) -> None:
    message = post(repo, "t")
    log_of(repo).write_bytes(log_of(repo).read_bytes().strip())
    assert messages.find(state_of(repo), message.id) == message
    assert messages.find(state_of(repo), "t") is None


def test_ids_stay_unique_when_the_clock_goes_back(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 2e9)
    ids = [post(repo, "t").id, post(repo, "t", "x" * 100_000).id]
    monkeypatch.setattr(time, "time", lambda: 1e9)
    ids += [post(repo, "t").id, post(repo, "t").id]
    assert [number_of(one) for one in ids] == list(range(number_of(ids[0]), number_of(ids[0]) + 4))
    assert ids == sorted(ids)


def test_an_id_that_others_made_is_no_obstacle(repo: Repo) -> None:
    first = post(repo, "t")
    line = log_of(repo).read_bytes().replace(first.id.encode(), "mine é".encode())
    log_of(repo).write_bytes(log_of(repo).read_bytes() + line + line.replace(b"mine", b"zzzzzzzz"))
    assert post(repo, "t", refs=("mine é",)).refs == ("mine é",)
    assert len({one.id for one in read_all(repo)}) == 4


@pytest.mark.thorough
@pytest.mark.slow
def test_fifty_processes_at_once_lose_nothing(repo: Repo) -> None:
    body = """
    from gitgates.store import messages
    for n in range(3):
        draft = messages.Message(topic=f"by/{by}", text=f"{n} " + "x" * 5000 * n)
        sys.stdout.write(f"{by} {messages.post('.git/gitgates', draft).id}\\n")
        sys.stdout.flush()
    """
    printed = [line.split() for line in run_together(50, body, repo.path).splitlines()]
    log = messages.read_log(state_of(repo))
    assert (len(log.messages), log.left_out) == (150, 0)
    ids = [one.id for one in log.messages]
    assert ids == sorted(set(ids))
    for number in range(50):
        found = read_all(repo, f"by/{number}")
        assert [one.id for one in found] == [name for by, name in printed if by == str(number)]
        assert [one.text[0] for one in found] == ["0", "1", "2"]


def test_a_writer_killed_in_the_middle_is_no_obstacle(repo: Repo) -> None:
    post(repo, "t", "first")
    program = """
import fcntl
fd = os.open(messages.file_abs(state), os.O_RDWR | os.O_APPEND)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(fd, b'{"v": 1, "id": "zz')
print("held", flush=True)
sys.stdin.readline()
"""
    holder = start(repo, program)
    assert holder.stdout
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.communicate()
    assert messages.read_log(state_of(repo)).left_out == 1
    post(repo, "t", "second")
    assert texts(repo) == ["first", "second"]


def test_a_lock_that_is_never_freed_hangs_nobody(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(repo, "t", "first")
    monkeypatch.setattr(log, "LOCK_WAIT_S", 0.05)
    program = """
import fcntl
file = open(messages.file_abs(state))
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""
    holder = start(repo, program)
    assert holder.stdout
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(StateError, match="another process holds its lock"):
        post(repo, "t", "second")
    assert texts(repo) == ["first"]
    end(holder)


def test_a_full_disk_leaves_the_log_as_it_was(repo: Repo) -> None:
    post(repo, "t", "first")
    whole = log_of(repo).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50, hard))
        with pytest.raises(
            StateError, match=r"messages.jsonl: nothing was posted: .*(space|large)"
        ):
            post(repo, "t", "second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert log_of(repo).read_bytes() == whole


def test_a_place_that_cannot_be_written(repo: Repo) -> None:
    repo.write(".git/gitgates", "a file")
    with pytest.raises(StateError, match="nothing was posted: Not a directory"):
        post(repo, "t")
    with pytest.raises(StateError, match="cannot be read: Not a directory"):
        read_all(repo)


@given(st.floats(0, 253402300799, allow_nan=False))
def test_a_time_is_written_in_utc(stamp: float) -> None:
    moment = dt.datetime.fromtimestamp(round(stamp * 1000) // 1000, dt.UTC)
    written = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    assert utc(stamp) == f"{written}Z"
    assert utc(stamp, milliseconds=True)[:20] == f"{written}."


@given(st.integers(1, 1 << 60))
def test_an_id_is_read_as_it_was_written(number: int) -> None:
    made = id_of(number)
    assert number_of(made) == number
    assert normalise_id(made.upper().replace("0", "O").replace("1", "l")) == made


def test_a_stop_that_looks_for_a_message_loads_nothing_heavy(repo: Repo) -> None:
    post(repo, "t")
    own = repo.ask(sys.executable, "-c", "import sys, json, zlib; print(*sys.modules)").stdout
    looked = end(start(repo, "messages.find(state, 'x'); print(*sys.modules)"))
    heavy = {"sqlite3", "re", "typing", "subprocess", "datetime", "unicodedata", "calendar"}
    assert heavy & (set(looked.decode().split()) - set(own.decode().split())) == set()
