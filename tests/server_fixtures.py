"""The servers that gates run on: the same has to hold with each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from buildgrid_support import Server, needs_buildgrid, serving_buildgrid
from casd_support import needs_casd, serving_casd
from nginx_support import needs_nginx

_SMALL = [needs_casd.mark, needs_nginx.mark]


@pytest.hookimpl(tryfirst=True)  # before `-m` is heeded
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests on real servers to `make nightly`, but for the few that are to be in CI."""
    for item in items:
        needs = [*item.iter_markers("skipif")]
        is_small = any(mark in needs for mark in _SMALL)
        in_ci = item.get_closest_marker("in_ci")
        if needs_buildgrid.mark in needs or (is_small and not in_ci):
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(
    name="server",
    scope="session",
    params=[
        pytest.param(serving_casd, id="casd", marks=needs_casd),
        pytest.param(serving_buildgrid, id="buildgrid", marks=needs_buildgrid),
    ],
)
def _server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with request.param(tmp_path_factory.mktemp("server") / "server") as server:
        yield server
