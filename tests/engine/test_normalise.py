"""What changes between two runs that fail alike goes; what matters stays."""

from __future__ import annotations

from gitgates.core.clean import plain, plain_line
from gitgates.engine.findings.normalise import normalise

REMOVED = [
    ("\x1b[1;31mred\x1b[0m", "red"),
    ("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x07", "link"),
    ("\x1b]0;title\x07text", "text"),
    ("done in 0.12s", "done in <duration>"),
    ("took 3.4 s, then 12ms", "took <duration>, then <duration>"),
    ("after 1m 2s", "after <duration>"),
    ("after 1h2m0.5s", "after <duration>"),
    ("5 seconds, 2 minutes", "<duration>, <duration>"),
    ("<object at 0x7f3355fe7e90>", "<object at <address>>"),
    ("/tmp/tmpab12cd_x/out", "<tmp>"),
    ("open '/private/var/folders/ab/cd/T/x.txt'", "open '<tmp>/x.txt'"),
    ("/home/u/pytest-of-me/pytest-12/test_a0/log.txt", "<tmp>/log.txt"),
    ("/tmp/pytest-of-me/pytest-3/test_a0", "<tmp>"),
    ("in tmp8x2k_q1z now", "in <tmp> now"),
    ("mktemp: tmp.Ab3dEf6hIj", "mktemp: <tmp>"),
    ("worker-12345.sock", "worker-<number>.sock"),
    ("(pid 4711), pid=12", "(pid <number>), pid=<number>"),
    ("goroutine 19 [running]", "goroutine <number> [running]"),
    ("thread 'a::b' (13261) panicked", "thread 'a::b' panicked"),
    ("a.py:12:5: E501", "a.py: E501"),
    ("c.py:10:17:10:22: error", "c.py: error"),
    ("src/a.ts(12,5): error", "src/a.ts: error"),
    ("on line 12, column 3", "on line, column"),
    ("  12 | code\n     | ^", "| code\n| ^"),
    ("2026-01-02T03:04:05.678Z start", "<time> start"),
    ("2026-01-02 03:04:05,678 start", "<time> start"),
    ("at 13:36:32", "at <time>"),
    ("Sat Nov 21 13:36:32", "<time> <time>"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id <uuid>"),
    ("object 59807616e1fa2540724b", "object <hex>"),
    ("seed: 42", "seed: <number>"),
    ("======== 1 failed ========", "=== 1 failed ==="),
    ("a    b\t c", "a b c"),
    ("10%\r50%\rdone", "done"),
    ("x [... 123 bytes left out ...]", "x [...]"),
]


def test_what_changes_by_itself_is_removed() -> None:
    assert [(text, normalise(text)) for text, _expected in REMOVED] == REMOVED


KEPT = [
    "expected 3, got 4",
    "assert 1.5 == 2.5",
    "expected 0xff, got 0x0f",
    "HTTP 404",
    "{'a': 1, 'b': 12}",
    "127.0.0.1 refused",
    "version 1.2.3 is too old",
    "2 files would be reformatted",
    "test_3s and x_12ms",
    "tmp_path, tmpdirname, template",
    "a deed, a facade, 123456789012345",
    "12:30",
]
NAMES = [
    "mig/2026-01-02.sql",
    "mig/2026-01-02/up.sql",
    "mig/59807616e1fa2540724b.sql",
    "mig/123e4567-e89b-12d3-a456-426614174000.sql",
]


def test_what_matters_is_kept() -> None:
    assert [normalise(text) for text in KEPT] == KEPT


def test_the_name_of_a_file_with_its_line_is_kept() -> None:
    """Else the failures of two files would be the same one."""
    kept = [f"{name}: error" for name in NAMES]
    assert [normalise(f"{name}:1:5: error") for name in NAMES] == kept
    assert [normalise(f"{name}(1,5): error") for name in NAMES] == kept


def test_to_normalise_again_changes_nothing() -> None:
    once = [normalise(text) for text in (*(before for before, _ in REMOVED), *KEPT)]
    assert [*map(normalise, once)] == once


PLAIN = [
    (b"a\r\nb\r\r\nc", "a\nb\nc"),
    (b"10%\r100%\r\nend\r", "100%\nend"),
    (b"nul\x00 bell\x07 back\x08", "nul bell back"),
    ("rtl \u202eabc\u202c zero\u200bwidth tag\U000e0041".encode(), "rtl abc zerowidth tag"),
    (b"\xff not utf-8", "\ufffd not utf-8"),
    (b"\x1b]0;a title without an end\nnext", "0;a title without an end\nnext"),
    (b"\x1b(B\x1b[mtext\x1b", "text"),
    ("line\u2028separator".encode(), "line\nseparator"),
    (b"\ttab stays", "\ttab stays"),
    (b"\x1bPsome device control\x1b\\after", "after"),
]


def test_only_what_is_seen_is_left() -> None:
    assert [(data, plain(data)) for data, _expected in PLAIN] == PLAIN


def test_a_line_is_one_line_and_short() -> None:
    assert plain_line("a\nb\tc\x1b[1m") == "a b c"
    assert plain_line("x" * 300) == "x" * 199 + "…"
    assert plain_line("caf\udce9") == "caf?"
