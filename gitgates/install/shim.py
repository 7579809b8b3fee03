"""The shim: the small sh script that git finds in its hooks folder, and that starts us."""

from __future__ import annotations

import os
import shlex
import sys

import gitgates
from gitgates.git.previous_hook import BECOME
from gitgates.store.files import open_regular

# The second line of every shim of ours begins so, whatever its version.
MARK = b"# Installed by gitgates (shim "
_LONGEST_HEAD = 4096


def render(hook: str) -> bytes:
    """Return the shim of a hook: this interpreter and this installation are written into it."""
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    with open(os.path.join(package_abs, "install", "shim.sh"), encoding="utf-8") as file:
        template = file.read()
    become = "".join(f"    {line}" for line in BECOME.splitlines(keepends=True))
    template = template.replace("    @BECOME@\n", become)
    values = {
        "@HOOK@": hook,
        "@PYTHON@": sys.executable,
        "@HOME@": os.path.dirname(package_abs),
    }
    for placeholder, value in values.items():
        template = template.replace(f"={placeholder}\n", f"={shlex.quote(value)}\n")
    return os.fsencode(template)


def is_ours(path_abs: str) -> bool:
    """Tell whether a file is a shim of ours. A link never is: it is somebody's own."""
    if os.path.islink(path_abs) or not os.path.isfile(path_abs):
        return False
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            head = file.read(_LONGEST_HEAD)
    except OSError:
        return False
    return head.partition(b"\n")[2].startswith(MARK)
