"""The servers that gates run on: the same has to hold with each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from buildgrid_support import Server, needs_buildgrid, serving_buildgrid
from casd_support import needs_casd, serving_casd


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
