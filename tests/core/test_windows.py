"""On Windows itself, each entry is refused with the page that says why, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import SRC

PAGE = "docs/explanation/windows.md"
# What Python has on POSIX only. Source: "Availability" in the pages of `os` and of each module.
MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "_posixsubprocess")
PACKAGES = [click.__path__[0].removesuffix("/click")]
WINDOWS = """
import importlib.metadata, json, os, pathlib, select, signal, sys
pathlib.WindowsPath = pathlib.PosixPath  # for importlib.metadata, which is loaded as of POSIX
for name in %r:
    sys.modules[name] = None
for name in dir(os):
    if name.startswith(("fork", "posix_", "wait", "getuid", "geteuid", "getpg", "setpg", "setsid",
            "killpg", "mkfifo", "uname", "fch", "lch", "chown", "pread", "pwrite", "statvfs",
            "O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY")):
        delattr(os, name)
for name in ("SIGKILL", "SIGCHLD", "SIGHUP", "SIGALRM", "SIGPIPE", "SIGSTOP", "setitimer"):
    delattr(signal, name)
    sys.modules["_signal"].__dict__.pop(name, None)
del select.poll
os.name = "nt"
sys.platform = "win32"
sys.path[:0] = sys.argv.pop(1).split(os.pathsep)
from gitgates.__main__ import main
main()
""" % (MODULES,)  # noqa: UP031 - the program has braces


def on_windows(
    *args: str, program: str = WINDOWS, path: str = "", stdin: str = ""
) -> tuple[int, str, str]:
    """Return status, standard output and error of gitgates where there is nothing of POSIX."""
    places = os.pathsep.join(filter(None, [path, str(SRC), *PACKAGES]))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, places, *args],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "args",
    [
        ("run",),
        ("git-hook", ".git/hooks/pre-commit", "pre-commit"),
        (),
        ("pre-commit-hook",),
        ("rescue",),
        ("--version",),
        ("install-hooks",),
    ],
    ids=" ".join,
)
def test_is_refused_with_the_page(args: tuple[str, ...]) -> None:
    status, out, err = on_windows(*args)
    assert (status, out) == (69, "")
    first, second = err.splitlines()
    assert first == "gitgates: Windows itself is not supported; nothing was checked"
    assert "WSL" in second
    assert f"{PAGE} in the source distribution" in second
    assert (SRC / PAGE).exists()
    assert err.isascii()


def test_an_agent_is_neither_blocked_nor_left_unaware() -> None:
    event = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash"})
    status, out, err = on_windows("agent-hook", "claude", stdin=event)
    assert (status, err) == (0, "")
    said = json.loads(out)
    assert list(said) == ["systemMessage"]  # which decides nothing
    assert said["systemMessage"].startswith("gitgates: Windows itself is not supported")


def test_names_the_address_of_the_page_if_it_is_published(tmp_path: Path) -> None:
    info = tmp_path / "gitgates-9.dist-info"
    info.mkdir()
    at = "https://forge.example/us/gitgates/blob/v9/docs/"
    urls = (
        f"Project-URL: Source, https://forge.example\nProject-URL: Documentation, {at}README.md\n"
    )
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: gitgates\nVersion: 9\n{urls}")
    _status, _out, err = on_windows("run", path=str(tmp_path))
    assert f"{at}explanation/windows.md" in err


def test_without_the_refusal_there_would_be_a_traceback() -> None:
    _status, _out, err = on_windows("run", program=WINDOWS.replace('os.name = "nt"', ""))
    assert "ModuleNotFoundError" in err or "AttributeError" in err


def test_the_schema_can_be_made_for_an_editor() -> None:
    """validate-pyproject loads it in its own process, also on Windows."""
    program = WINDOWS.replace(
        "from gitgates.__main__ import main\nmain()",
        "from gitgates.config.jsonschema import get_schema\nprint(get_schema()['title'])",
    )
    assert on_windows(program=program) == (0, "Settings of gitgates\n", "")
