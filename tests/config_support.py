"""How tests of the configuration read one: from TOML, without files."""

from __future__ import annotations

import tomllib

from gitgates.config.load import describe
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.types import Config


def read(shared: str, local: str | None = None) -> tuple[Config, str, str]:
    """Return the configuration, its fatal problems, and its deferred ones, as people read them."""
    documents = [Document("gitgates.toml", (), tomllib.loads(shared))]
    if local is not None:
        documents.append(Document("gitgates.local.toml", (), tomllib.loads(local)))
    config, problems = parse(tuple(documents))
    fatal = describe([problem for problem in problems if not problem.deferred])
    return config, fatal, describe([problem for problem in problems if problem.deferred])


def fatal(shared: str, local: str | None = None) -> str:
    config, said, deferred = read(shared, local)
    assert (deferred, bool(config)) == ("", True)
    return said
