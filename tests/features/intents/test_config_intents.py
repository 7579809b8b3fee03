"""The table `[tool.gitgates.intents]`."""

from __future__ import annotations

import pytest
from config_support import fatal, read, table
from conftest import Repo
from each_case import each_case

from gitgates.config.load import load
from gitgates.features.intents.intent import IntentSettings, find_settings


def test_without_the_table_intents_are_off() -> None:
    assert find_settings(read("jobs = 1")[0]) is None
    assert find_settings(read("[intents]")[0]) == table(IntentSettings)


def test_its_keys_are_read() -> None:
    config, said, _deferred = read(
        '[intents]\nfile = "./plan/intents.toml"\nrequired = true\nask = ["migrations/**"]\n'
        'ttl = "1h"\ncontext = "4 KiB"\n'
    )
    assert said == ""
    assert find_settings(config) == IntentSettings(
        file="plan/intents.toml",
        required=True,
        ask=("migrations/**",),
        ttl_s=3600.0,
        context_bytes=4096,
    )


@each_case("value", ['""', '"/a.yaml"', '"../a.yaml"', '"a/../../b.yaml"', '"a.json"'])
def test_a_file_is_inside_the_repository(value: str) -> None:
    assert fatal(f"[intents]\nfile = {value}") == (
        f"gitgates.toml: intents.file: got {value}, expected a .yaml, .yml or .toml file inside "
        "the repository, relative to its root"
    )


@each_case("local", ["required = false", 'file = "mine.yaml"', 'ask = ["x"]', 'ttl = "9h"'])
def test_required_intents_cannot_be_weakened_locally(local: str) -> None:
    key = local.partition(" ")[0]
    assert fatal("[intents]\nrequired = true", f"[intents]\n{local}") == (
        f"gitgates.local.toml: intents.{key}: `intents` is required and cannot be changed locally. "
        "Change it in gitgates.toml instead."
    )
    assert fatal("[intents]", f"[intents]\n{local}") == ""


@pytest.mark.parametrize("text", ["", "[intents]\nrequired = true\n"])
def test_the_settings_are_cached(repo: Repo, text: str) -> None:
    repo.write("gitgates.toml", f"jobs = 1\n{text}")
    cache = str(repo.path / ".git/cache")
    first = load(str(repo.path), cache)
    assert load(str(repo.path), cache) == first
    assert first
    assert find_settings(first) == (table(IntentSettings, required=True) if text else None)
