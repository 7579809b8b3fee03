"""Gates that log each run outside of the repository, so that runs can be counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.types import Event, Gate, GateResult, make_gate
from gitgates.engine.run.job import RunOptions

# It fails where a file has BAD in it, or of its arguments, if it has any.
PROBE = """\
#!/bin/sh
echo "$*" >> "$OUT/log"
[ -z "$MEANWHILE" ] || sh -c "$MEANWHILE"
! grep -qrs --exclude=.git --exclude-dir=.git BAD .
"""
PROBE_FILES = """\
#!/bin/sh
echo "$*" >> "$OUT/log"
! grep -qs BAD "$@"
"""


class Checker:
    """Runs gates in process, with tools in a folder of its own."""

    def __init__(self, repo: Repo, out: Path) -> None:
        self.repo, self.out = repo, out
        self.bin = out.parent / "bin"
        self.bin.mkdir()
        self.path = os.environ["PATH"]
        self.messages = Heard()
        self.tool("probe", PROBE)
        self.tool("probe-files", PROBE_FILES)

    def tool(self, name: str, text: str) -> Path:
        """Install a program, in place of one of that name."""
        path, new = self.bin / name, self.bin / ".new"
        new.write_text(text)
        new.chmod(0o755)
        new.rename(path)
        return path

    def run(
        self,
        *gates: Gate,
        root: Path | None = None,
        paths: tuple[str, ...] = (),
        checkout: Any = None,
        **env: str,
    ) -> list[GateResult]:
        """Run gates one after another, whatever they end with; return their results."""
        root_abs = str(root or self.repo.path)
        config = config_of(gates, "manual", 1, strategy="collect")
        event = Event(host="manual", name="manual", root_abs=root_abs, paths=paths)
        path = f"{self.bin}{os.pathsep}{self.path}"
        options = RunOptions(checkout=checkout)
        env = {**os.environ, "PATH": path, **env}
        return results(run_gates(config, event, self.messages, env=env, options=options))

    def one(self, gate: Gate, **options: Any) -> str:
        """Run one gate; return its status, or `reused`."""
        (result,) = self.run(gate, **options)
        return "reused" if result.origin.reused and not self.log() else result.status

    def log(self) -> list[str]:
        """Return the arguments of each run since the last call."""
        path = self.out / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


WHOLE = make_gate(name="whole", command="probe", reuse=True)
BY_FILE = make_gate(
    name="by-file",
    command=("probe-files",),
    reuse="by-file",
    files=("*.txt",),
    pass_files=True,
    inputs=("probe.toml",),
)
