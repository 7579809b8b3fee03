"""The parsed configuration is kept, and used for exactly the bytes that it was made from."""

from __future__ import annotations

import marshal
import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from config_support import table, table_in

from gitgates.config import load as load_module
from gitgates.config.load import load, read_files
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config
from gitgates.features.review.config import Weighting

FILE = '[gates.g]\ncommand = ["a", "b"]\nenv = { A = "b" }\n[hooks.pre-commit]\ngates = ["g"]\n'


class Place:
    """A root with settings, and a file to keep them parsed."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.cache = root / "state" / "config.marshal"
        self.parsed = 0
        (root / "gitgates.toml").write_text(FILE)
        parse_files = load_module.parse_files

        def counted(raw: Mapping[str, bytes | None]) -> tuple[Config | None, tuple[object, ...]]:
            self.parsed += 1
            return parse_files(raw)

        monkeypatch.setattr(load_module, "parse_files", counted)

    def load(self) -> Config:
        config = load(str(self.root), str(self.cache))
        assert config is not None
        return config


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_second_time_nothing_is_parsed(place: Place) -> None:
    first = place.load()
    assert (place.load(), place.parsed) == (first, 1)
    assert place.cache.stat().st_mode & 0o077 == 0
    assert place.cache.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(place.cache.parent) == ["config.marshal"]


def test_kept_configuration_is_the_same_in_every_field_and_type(place: Place) -> None:
    first, second = place.load(), place.load()
    assert repr(first) == repr(second)
    assert type(second.gates[0]) is type(first.gates[0])


def test_the_settings_of_a_review_are_kept_as_they_are(place: Place) -> None:
    more = '[hooks.Stop]\ngates = ["review"]\n[review]\ncritical = ["a/"]\nmin_lines = 7\n'
    (place.root / "gitgates.toml").write_text(FILE + more)
    first, second = place.load(), place.load()
    assert (repr(first), place.parsed) == (repr(second), 1)
    assert table_in(second, Weighting) == table(Weighting, critical=("a/",), min_lines=7.0)


def test_same_length_and_time_but_other_bytes(place: Place) -> None:
    place.load()
    file = place.root / "gitgates.toml"
    times = file.stat()
    file.write_text(FILE.replace('"a"', '"z"'))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert place.load().gates[0].program.command == ("z", "b")
    assert place.parsed == 2


def test_local_file_counts(place: Place) -> None:
    place.load()
    local = place.root / "gitgates.local.toml"
    local.write_text("jobs = 5\n")
    assert place.load().jobs == 5
    local.unlink()
    assert place.load().jobs == 0
    assert place.parsed == 3


def test_file_that_is_gone_is_another_configuration_than_an_empty_one(place: Place) -> None:
    place.load()
    (place.root / "pyproject.toml").write_text("")
    place.load()
    assert place.parsed == 2


def test_settings_with_problems_are_refused_every_time(place: Place) -> None:
    (place.root / "gitgates.toml").write_text("jobs = true")
    for _time in range(2):
        with pytest.raises(ConfigError):
            place.load()
    assert not place.cache.exists()


def test_deferred_problems_do_not_keep_it_from_being_kept(place: Place) -> None:
    (place.root / "gitgates.toml").write_text("[gates.g]\n")
    assert place.load() == place.load()
    assert place.parsed == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"\0" * 100,
        marshal.dumps(None),
        marshal.dumps((1, 2)),
        marshal.dumps((1, 2, 3)),
        marshal.dumps((1, 2, 3, 4)),
    ],
    ids=["empty", "garbage", "zeros", "none", "two", "three", "four"],
)
def test_garbage_is_parsed_anew_and_replaced(place: Place, content: bytes) -> None:
    first = place.load()
    place.cache.write_bytes(content)
    assert (place.load(), place.parsed) == (first, 2)
    assert (place.load(), place.parsed) == (first, 2)


def test_torn_file_at_every_length(place: Place) -> None:
    first = place.load()
    whole = place.cache.read_bytes()
    for length in range(len(whole)):
        place.cache.write_bytes(whole[:length])
        assert load_module.read_cache(str(place.cache), str(place.root)) is None, length
    place.cache.write_bytes(whole)
    kept = load_module.read_cache(str(place.cache), str(place.root))
    assert kept
    assert kept.config == first


def test_random_garbage_is_never_an_error(place: Place) -> None:
    chance = random.Random(7)
    place.cache.parent.mkdir()
    # No lists, tuples or texts: one flipped length of those asks for gigabytes of memory.
    kinds = b"NTFSig.0rRlx"
    for _time in range(500):
        content = bytes(chance.choice(kinds) for _byte in range(chance.randrange(40)))
        place.cache.write_bytes(content)
        assert load_module.read_cache(str(place.cache), str(place.root)) is None


@pytest.mark.parametrize("frozen", [None, 7])
def test_right_key_and_wrong_content(place: Place, frozen: int | None) -> None:
    raw = read_files(str(place.root))
    place.cache.parent.mkdir()
    key = load_module._KEY  # noqa: SLF001 - what makes a file one of ours
    place.cache.write_bytes(marshal.dumps((key, dict(raw), frozen)))
    assert load_module.read_cache(str(place.cache), str(place.root)) is None


def test_another_version_parses_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.load()
    monkeypatch.setattr(load_module, "_KEY", ("another version",))
    place.load()
    place.load()
    assert place.parsed == 2


def test_state_folder_that_cannot_be_made(place: Place) -> None:
    place.cache.parent.write_text("a file in the way")
    assert place.load() == place.load()
    assert place.parsed == 2


def test_cache_that_is_a_folder(place: Place) -> None:
    place.cache.mkdir(parents=True)
    assert place.load() == place.load()
    assert os.listdir(place.cache.parent) == ["config.marshal"]  # no temporary file is left


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_state_folder(place: Place) -> None:
    place.cache.parent.mkdir(mode=0o500)
    assert place.load() == place.load()
    assert place.parsed == 2
