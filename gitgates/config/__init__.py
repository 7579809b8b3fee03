"""From the bytes of the settings files to one checked `Config`."""

from __future__ import annotations

PYPROJECT = "pyproject.toml"
OWN_FILE = "gitgates.toml"
LOCAL_FILE = "gitgates.local.toml"
PREFIXES: dict[str, tuple[str, ...]] = {  # file → the table that holds our keys
    PYPROJECT: ("tool", "gitgates"),
    OWN_FILE: (),
    LOCAL_FILE: (),
}
FILES = tuple(PREFIXES)  # of the root
BASELINE_FILE = ".gitgates-baseline.json"  # see engine/findings/baseline.py
