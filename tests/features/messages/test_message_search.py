"""Searching messages: with the index and without, and a broken index is no obstacle."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from conftest import Repo
from each_case import each_case
from together import run_together

from gitgates.core.errors import UsageError
from gitgates.features.messages.search import SearchResult, Term, search, terms, words
from gitgates.git.repo import find_repo
from gitgates.store import messages
from gitgates.store.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable


def state(repo: Repo) -> str:
    return find_repo(str(repo.path), {}).shared_state_abs


def post(repo: Repo, topic: str, text: str) -> str:
    return messages.post(state(repo), Message(topic=topic, text=text)).id


def find(repo: Repo, text: str, topic: str = "", limit: int = 0) -> SearchResult:
    return search(state(repo), text, topic=topic, limit=limit)


def said(found: SearchResult) -> list[str]:
    return sorted(one.text for one in found.messages)


def index_of(repo: Repo) -> Path:
    return repo.path / ".git/gitgates/messages.sqlite"


def left(repo: Repo) -> list[str]:
    return sorted(os.listdir(index_of(repo).parent))


def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(sqlite3, "connect", refuse)


@each_case(
    ("text", "expected"),
    [
        ("", ""),
        ("The parser's foo_bar(x) --limit=3", "the parser s foo bar x limit 3"),
        ("Résumé RE\u0301SUME\u0301 ﬁne STRASSE straße İ", "resume resume fine strasse strasse i"),
        ("日本語 テスト", "日 本 語 テ ス ト"),
        ("done 🎉✓👩\u200d👧", "done 🎉 ✓ 👩 👧"),
        ("שלום مرحبا Привет", "שלום مرحبا привет"),
        ("\x1b[31mred\x1b[0m \ud800", "red"),
        ("x" * 150, "x" * 150),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert words(text) == expected


@each_case(
    ("query", "expected"),
    [
        ("one two", (Term("one"), Term("two"))),
        ('"one  two" three', (Term("one two"), Term("three"))),
        ("foo-bar", (Term("foo bar"),)),
        ('pars* "a b"*', (Term("pars", begins=True), Term("a b", begins=True))),
        ('"never ends', (Term("never ends"),)),
        ("a a A", (Term("a"),)),
        ("OR NOT NEAR(a)", (Term("or"), Term("not"), Term("near a"))),
        (' "" * - "*" ^', ()),
    ],
)
def test_terms(query: str, expected: tuple[Term, ...]) -> None:
    assert terms(query) == expected


TEXTS = [
    "the parser fails on an empty file",
    "Parsers, parsing: PARSER",
    "out of memory",
    "memory is out of reach",
    "Résumé of 日本語",
    "it works 🎉",
    "foo_bar = foo-bar + foo.bar",
    "x" * 150,
]


@pytest.mark.parametrize(
    ("query", "topic", "expected"),
    [
        ("parser", "", [TEXTS[1], TEXTS[0]]),
        ("PARS*", "", [TEXTS[1], TEXTS[0]]),
        ("parser empty", "", [TEXTS[0]]),
        ('"out of memory"', "", [TEXTS[2]]),
        ("out of memory", "", [TEXTS[3], TEXTS[2]]),
        ("resume", "", [TEXTS[4]]),
        ("本", "", [TEXTS[4]]),
        ("語日", "", []),
        ("🎉", "", [TEXTS[5]]),
        ("bar", "", [TEXTS[6]]),
        ("x" * 100 + "*", "", [TEXTS[7]]),
        ("topic2", "", [TEXTS[2]]),  # words of a topic, too
        ("memory topic2", "", [TEXTS[2]]),
        ("parser", "topic/", [TEXTS[1], TEXTS[0]]),
        ("parser", "topic/topic1", [TEXTS[1]]),
        ("parser", "topi", []),
        ("parser", "other/", []),
        ("no-such-word", "", []),
    ],
)
def test_the_index_and_the_scan_find_the_same(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, query: str, topic: str, expected: list[str]
) -> None:
    for number, text in enumerate(TEXTS):
        post(repo, f"topic/topic{number}", text)
    found = find(repo, query, topic)
    assert (said(found), found.total, found.indexed) == (sorted(expected), len(expected), True)
    no_index(monkeypatch)
    scanned = find(repo, query, topic)
    assert (said(scanned), scanned.indexed) == (said(found), False)
    assert scanned.total == found.total


def test_the_best_come_first(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    post(repo, "a", "parser " + "of this and of that " * 30)
    post(repo, "a", "parser parser parser")
    post(repo, "parser", "what it does")
    first, second = (post(repo, "a", "the parser again") for _ in range(2))
    found = find(repo, "parser", limit=4)
    assert found.total == 5
    assert found.messages[0].topic == "parser"
    assert [one.id for one in found.messages[2:]] == [second, first]
    no_index(monkeypatch)
    found = find(repo, "parser", limit=2)  # the newest, without it
    assert ([one.id for one in found.messages], found.total) == ([second, first], 5)


@pytest.mark.parametrize("query", ["", '"', "*", "- ^ ()", "\ud800", "\x1b[2J"])
def test_a_query_without_a_word_is_refused(repo: Repo, query: str) -> None:
    with pytest.raises(UsageError, match="contains no search term") as refused:
        find(repo, query)
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    "query", ["a AND", "NEAR(a b)", 'a" b', "topic: a", "{a b}: c", "a + b", "'; DROP", "a " * 5000]
)
def test_what_sqlite_would_take_for_syntax_is_words(repo: Repo, query: str) -> None:
    post(repo, "t", "; drop near a b and topic c")
    found = find(repo, query)
    assert found.indexed


def test_where_nothing_was_posted_nothing_is_found_or_made(repo: Repo) -> None:
    assert find(repo, "a").messages == ()
    assert not index_of(repo).parent.exists()


def test_the_index_is_kept_until_something_is_posted(repo: Repo) -> None:
    post(repo, "t", "first one")
    assert said(find(repo, "one")) == ["first one"]
    made = index_of(repo).stat()
    assert stat.S_IMODE(made.st_mode) == 0o600
    assert said(find(repo, "first")) == ["first one"]
    assert index_of(repo).stat() == made
    post(repo, "t", "second one")
    assert said(find(repo, "one")) == ["first one", "second one"]
    assert left(repo) == ["messages.jsonl", "messages.sqlite"]


def test_a_log_that_was_changed_in_another_way_is_indexed_anew(repo: Repo) -> None:
    post(repo, "t", "first")
    find(repo, "first")
    log = repo.path / ".git/gitgates/messages.jsonl"
    before = log.stat()
    log.write_bytes(log.read_bytes().replace(b'"first"', b'"other"'))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert said(find(repo, "other")) == ["other"]
    assert said(find(repo, "first")) == []


def garbage(index: Path) -> None:
    index.write_bytes(b"garbage" * 1000)


def empty(index: Path) -> None:
    index.write_bytes(b"")


def torn(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:5000])


def overwritten(index: Path) -> None:
    raw = index.read_bytes()
    index.write_bytes(raw[:100] + b"\xff" * (len(raw) - 100))


def without_its_tables(index: Path) -> None:
    with sqlite3.connect(index) as database:
        database.execute("DROP TABLE messages")
    database.close()


def of_another_log(index: Path) -> None:
    with sqlite3.connect(index) as database:
        database.execute("UPDATE log SET state = ''")
    database.close()


@pytest.mark.parametrize(
    "spoil",
    [
        *(garbage, empty, torn, overwritten),
        *(without_its_tables, of_another_log),
    ],
)
def test_an_index_that_cannot_be_used_is_made_anew(
    repo: Repo, spoil: Callable[[Path], None]
) -> None:
    post(repo, "t", "first")
    post(repo, "t", "second")
    find(repo, "first")
    spoil(index_of(repo))
    assert said(find(repo, "second")) == ["second"]
    found = find(repo, "second")
    assert (said(found), found.indexed) == (["second"], True)
    assert left(repo) == ["messages.jsonl", "messages.sqlite"]


def test_a_lock_on_the_index_hangs_nobody(repo: Repo) -> None:
    post(repo, "t", "first")
    find(repo, "first")
    other = sqlite3.connect(index_of(repo))
    other.execute("BEGIN EXCLUSIVE")
    assert said(find(repo, "first")) == ["first"]
    post(repo, "t", "first again")
    assert said(find(repo, "first")) == ["first", "first again"]
    other.close()


def test_a_folder_in_the_place_of_the_index(repo: Repo) -> None:
    post(repo, "t", "first")
    (index_of(repo) / "x").mkdir(parents=True)
    found = find(repo, "first")
    assert (said(found), found.indexed) == (["first"], False)
    assert left(repo) == ["messages.jsonl", "messages.sqlite"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_cannot_be_written(repo: Repo) -> None:
    post(repo, "t", "first")
    folder = index_of(repo).parent
    folder.chmod(0o500)
    try:
        found = find(repo, "first")
        assert (said(found), found.indexed) == (["first"], False)
    finally:
        folder.chmod(0o700)


def test_a_full_disk(repo: Repo) -> None:
    post(repo, "t", "first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
        found = find(repo, "first")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert (said(found), found.indexed) == (["first"], False)
    assert left(repo) == ["messages.jsonl"]


def test_a_python_without_sqlite(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    post(repo, "t", "first")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    found = find(repo, "first")
    assert (said(found), found.indexed) == (["first"], False)
    assert left(repo) == ["messages.jsonl"]


def test_lines_that_others_wrote_are_no_obstacle(repo: Repo) -> None:
    post(repo, "t", "first")
    log = repo.path / ".git/gitgates/messages.jsonl"
    line = log.read_bytes()
    odd = line.replace(b'"first"', b'"first \\ud800 \\u0000 x"').replace(b'"t"', b'"\\ud800"')
    log.write_bytes(b"garbage\n" + line + odd + line[:-30])
    found = find(repo, "first")
    assert (said(found), found.indexed) == (["first", "first \ud800 \0 x"], True)


def test_a_linked_worktree_uses_the_same_index(repo: Repo, tmp_path: Path) -> None:
    repo.commit("first", "--allow-empty")
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "side # 50%?"))
    side = Repo(tmp_path / "side # 50%?")
    post(side, "t", "from the side")
    assert said(find(side, "side")) == ["from the side"]
    made = index_of(repo).stat()
    assert said(find(repo, "side")) == ["from the side"]
    assert index_of(repo).stat() == made


@pytest.mark.parametrize("name", ["a # b?c%41", "b\udcff", "é😀"], ids=ascii)
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    repo = Repo.init(tmp_path / name)
    post(repo, "t", "first")
    assert find(repo, "first").indexed


@pytest.mark.thorough
@pytest.mark.slow
def test_many_search_and_post_at_once(repo: Repo) -> None:
    body = """
    from gitgates.store.messages import Message, post
    from gitgates.features.messages.search import search
    for n in range(1, 6):
        post(".git/gitgates", Message(topic=f"by/{by}", text=f"word {n} " + "x " * 1000 * n))
        assert search(".git/gitgates", "word", topic=f"by/{by}").total == n
    """
    run_together(8, body, repo.path)
    assert find(repo, "word", "by/").total == 40
    assert left(repo) == ["messages.jsonl", "messages.sqlite"]
