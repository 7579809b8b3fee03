"""How tests of the configuration read one: from TOML, without files."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

from gitgates.config.load import as_record, describe, table_of
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.types import Config

Made = TypeVar("Made")


def table(kind: Callable[..., Made], **fields: object) -> Made:
    """Return the record of a feature's table in which nothing but these fields is written."""
    unknown = fields.keys() - {*kind._fields}  # type: ignore[attr-defined] # as each record has
    assert not unknown
    return as_record(_name(kind), fields, kind)


def table_in(config: Config, kind: Callable[..., Made]) -> Made:
    return table_of(config, _name(kind), kind)


def without_guard(config: Config) -> Config:
    """Return a configuration without the policies that join the others, where there are any."""
    off = {name: {"enabled": False} for name in ("guard", "undo")}
    return config._replace(tables={**config.tables, **off})


def without_undo(config: Config) -> Config:
    return config._replace(tables={**config.tables, "undo": {"enabled": False}})


def with_tables(config: Config, *records: Any) -> Config:
    tables = {_name(type(record)): record._asdict() for record in records}
    return config._replace(tables={**config.tables, **tables})


def _name(kind: Callable[..., object]) -> str:
    return kind.__module__.split(".")[2]  # that of the folder


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
