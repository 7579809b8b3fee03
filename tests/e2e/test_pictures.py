"""The pictures of the docs show what these runs print today."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.nightly
@pytest.mark.slow
def test_the_pictures_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(DOCS)])
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec
    assert spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    stale = [
        name
        for name, content in pictures.contents().items()
        if (stored := DOCS / "pictures" / name)
        and (
            stored.read_text(encoding="utf-8") != content
            if stored.suffix == ".svg"
            else pictures.digest_in(stored.read_bytes()) != pictures.digest_of(content)
        )
    ]
    assert stale == [], "stale: run `make pictures`"
