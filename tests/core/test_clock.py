"""When a process began, as it says itself."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from gitgates.proc import alarm

SAY = """
import time
from gitgates.proc.alarm import process_start_time
print(process_start_time(), time.time())
"""


def test_a_process_knows_when_it_began() -> None:
    for _ in range(5):
        before = time.time()
        done = subprocess.run([sys.executable, "-c", SAY], capture_output=True, check=True)
        began, asked = (float(word) for word in done.stdout.split())
        assert before <= began <= asked
        assert began <= before + 5


def test_it_stays_the_same() -> None:
    assert abs(alarm.process_start_time() - alarm.process_start_time()) < 0.02


@pytest.mark.parametrize("trouble", [OSError, ValueError, AttributeError])
def test_where_the_kernel_does_not_say(
    monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    def fail(_name: object) -> int:
        raise trouble

    monkeypatch.setattr("os.sysconf", fail)
    now = time.time()
    assert now - 1 < alarm.process_start_time() < now
