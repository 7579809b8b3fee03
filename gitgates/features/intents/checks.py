"""Intents checks for `gitgates doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from gitgates.core.clean import counted
from gitgates.core.types import Config
from gitgates.features.intents.file import load
from gitgates.features.intents.intent import ACTIVE, IntentsError, find_settings
from gitgates.git.repo import Repo
from gitgates.verbs.finding import Finding


def check(repo: Repo, config: Config) -> Iterator[Finding]:
    """Find problems in the intents file, and whether agents can select an intent at all."""
    settings = find_settings(config)
    if settings is None:
        return
    try:
        intents = load(repo, config)
    except IntentsError as error:
        for line in error.message.splitlines():
            location, _, what = line.partition(": ")
            yield Finding("problem", "intents", location, what, error.hint)
        return
    total, active = counted(len(intents.intents), "intent"), len(intents.active)
    if settings.required and not active:
        what = f"{total}, none is {ACTIVE}: agents need one to change anything (`required`)"
        yield Finding("problem", "intents", settings.file, what, f"set one to {ACTIVE}")
    else:
        yield Finding("ok", "intents", settings.file, f"{total}, {active} of them {ACTIVE}")
