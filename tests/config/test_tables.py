"""The tables of features: a default stands once, and what another version recorded is read."""

from __future__ import annotations

import pytest

from gitgates.config.keys import completed, defaults, tables
from gitgates.config.load import as_record, table_of, unconfigured
from gitgates.core.policy import POLICIES
from gitgates.core.record import Record
from gitgates.core.types import Config


class Sample(Record):
    """What a feature of another version would make of the table."""

    mode: str
    gone: str = "kept"


@pytest.mark.parametrize("name", tables())
def test_unknown_fields_are_left_out_and_missing_ones_have_their_default(name: str) -> None:
    field, *rest = defaults(name)
    read = completed(name, {field: "mine", "gone": 1})
    assert read == {field: "mine", **{one: defaults(name)[one] for one in rest}}


def test_a_table_that_is_not_there_is_as_if_it_were_not_written() -> None:
    for name, table in unconfigured().tables.items():
        assert table == defaults(name)
    assert unconfigured().tuned == ()
    assert {row.table for row in POLICIES if "by-table" in row.traits}.isdisjoint(
        unconfigured().tables
    )


def test_every_table_of_a_policy_is_one_of_a_feature() -> None:
    assert {row.table for row in POLICIES if row.table} <= tables().keys()


def test_a_record_is_made_of_another_versions_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.config.keys.defaults", lambda _name: {"mode": "auto"})
    assert as_record("any", {"mode": "on", "more": 1}, Sample) == Sample(mode="on")
    assert table_of(Config(tables={"any": {"mode": "on"}}), "any", Sample).mode == "on"
    assert table_of(Config(tables={"any": {"more": 1}}), "any", Sample).mode == "auto"
    assert table_of(Config(), "any", Sample).mode == "auto"
