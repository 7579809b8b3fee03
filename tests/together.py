"""Many processes that do the same at once, forked from one interpreter: starting fifty is dear."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

from conftest import SRC

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import os, sys, traceback

def work(by):
{body}

begin, start = os.pipe()
pids = []
for number in range({count}):
    pid = os.fork()
    if not pid:
        os.close(start)
        os.read(begin, 1)  # until all are there
        try:
            work(str(number))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    pids.append(pid)
os.close(start)
sys.exit(any(os.waitpid(pid, 0)[1] for pid in pids))
"""


def run_together(count: int, body: str, cwd: Path) -> str:
    """Run a function body, in which `by` tells the processes apart; return what they have said."""
    program = _PROGRAM.format(count=count, body=textwrap.indent(textwrap.dedent(body), "    "))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
