"""A scope is extended by an insertion into the person's file, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.errors import ConfigError
from gitgates.features.intents.cli import add_pattern
from gitgates.features.intents.parse import parse
from gitgates.features.intents.scope import wrong_pattern
from gitgates.store.files import replace_unchanged

HEAD = "active_intents:\n  - id: a\n    title: A\n    status: PENDING\n    owned_scope:"
TAIL = "\n    notes: é😀 # the end\n  - {id: b, title: B, status: PENDING, owned_scope: [x]}"
TOML = '[[active_intents]]\nid = "a"\ntitle = "A"\nstatus = "PENDING"\nowned_scope = '


@each_case(
    ("before", "after"),
    [
        (" [x]", ' [x, "docs/**"]'),
        (' [ "x", y ] # why', ' [ "x", y, "docs/**" ] # why'),
        ("\n      - x", '\n      - x\n      - "docs/**"'),
        ("\n    - x # why\n    # more", '\n    - x # why\n    - "docs/**"\n    # more'),
        ("\n      -   'x'\n\n", "\n      -   'x'\n      - \"docs/**\"\n\n"),
        ("\n      [\n        x,\n      ]", '\n      [\n        x, "docs/**",\n      ]'),
    ],
)
@each_case("tail", ["", "\n", TAIL, f"\n{TAIL}\n"])
@each_case("head", [HEAD, f"# 😀\n---\n{HEAD}"])
def test_yaml_is_extended(head: str, before: str, after: str, tail: str) -> None:
    text = head + before + tail
    assert add_pattern(text, "f.yaml", "a", "docs/**") == head + after + tail
    text = text.replace("\n", "\r\n")
    expected = (head + after + tail).replace("\n", "\r\n")
    assert add_pattern(text, "f.yaml", "a", "docs/**") == expected


@each_case(
    ("before", "after"),
    [
        ('["x"] # why', '["x", "docs/**"] # why'),
        ('[\n  "x", # why\n]', '[\n  "x", # why\n  "docs/**",\n]'),
        ("[\n  'x'\n]", "[\n  'x',\n  \"docs/**\"\n]"),
    ],
)
def test_toml_is_extended(before: str, after: str) -> None:
    tail = '\nnotes = "é😀" # the end\n[[active_intents]]\nid = "b"\ntitle = "B"\n'
    tail += 'status = "PENDING"\nowned_scope = ["x"]\n'
    assert add_pattern(TOML + before + tail, "f.toml", "a", "docs/**") == TOML + after + tail


SHARED = HEAD.replace("owned_scope:", "owned_scope: &s [x]") + TAIL.replace("[x]", "*s")


@each_case(
    ("text", "name"),
    [
        (SHARED, "a"),
        (SHARED, "b"),
        (f"{HEAD} [x]", "unknown"),
        (f"{HEAD} 7", "a"),
        (f"\ufeff{HEAD} [x]", "a"),
        ("", "a"),
        (": [", "a"),
    ],
)
def test_what_an_insertion_cannot_do_is_not_done(text: str, name: str) -> None:
    assert add_pattern(text, "f.yaml", name, "docs/**") is None


patterns = st.text(st.characters(codec="utf-8"), min_size=1).filter(
    lambda one: not wrong_pattern(one)
)


@pytest.mark.slow
@given(patterns)
@pytest.mark.parametrize(
    ("text", "file"),
    [(f"{HEAD} [x]", "f.yaml"), (f"{HEAD}\n    - x{TAIL}", "f.yaml"), (f'{TOML}["x"]', "f.toml")],
)
def test_any_pattern_is_read_back(text: str, file: str, pattern: str) -> None:
    changed = add_pattern(text, file, "a", pattern)
    assert changed
    assert parse(changed, file)[0][0].owned_scope == ("x", pattern)


def test_a_file_that_has_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"now\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError) as raised:
        replace_unchanged(str(tmp_path), "f.yaml", b"before\n", b"after\n")
    message = "f.yaml: was changed by another process in the meantime; nothing was written"
    assert raised.value.message == message
    assert path.read_bytes() == b"now\n"
    replace_unchanged(str(tmp_path), "f.yaml", b"now\n", "after é\r\n".encode())
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == ("after é\r\n".encode(), 0o640)
    assert [one.name for one in tmp_path.iterdir()] == ["f.yaml"]
