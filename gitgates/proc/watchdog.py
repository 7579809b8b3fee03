"""A watchdog that ends the gates of a killed run: a shell that waits for gitgates to exit.

It knows a process group from the gate's start to its end. When we are gone, for whatever reason,
the pipe that only we hold closes; then the groups that it knows are asked to end, and finally
killed.
"""

from __future__ import annotations

import os

from gitgates.proc.call import spawn_detached

# `+ GROUP`, `- GROUP`, and `.` when all is well; without it, the remaining groups are ended.
# `m NAME=VALUE` and `c FOLDER` are the mark and the control group of descendants to be killed.
_SCRIPT = """
left= mark= cgroup=
while read -r sign group; do
    if [ "$sign" = . ]; then
        exit 0
    elif [ "$sign" = + ]; then
        left="$left $group"
    elif [ "$sign" = m ]; then
        mark=$group
    elif [ "$sign" = c ]; then
        cgroup=$group
    else
        kept=
        for one in $left; do [ "$one" = "$group" ] || kept="$kept $one"; done
        left=$kept
    fi
done
for one in $left; do kill -s TERM -- "-$one"; done
sleep 2
for one in $left; do kill -s KILL -- "-$one"; done
if [ "$mark" ]; then
    for one in /proc/[0-9]*; do
        tr '\\000' '\\n' <"$one/environ" | grep -qxF -e "$mark" && kill -s KILL "${one#/proc/}"
    done
fi
if [ "$cgroup" ]; then
    echo 1 >"$cgroup/cgroup.kill"
    for second in 1 2 3 4 5; do
        sleep 1
        rmdir "$cgroup" && break
    done
fi
"""


class Watchdog:
    """Watches the process groups of one run's gates, until `close`."""

    def __init__(self) -> None:
        read_fd, self._fd = os.pipe()  # no other child inherits it
        actions = [
            (os.POSIX_SPAWN_DUP2, read_fd, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        argv = ("sh", "-c", _SCRIPT)
        env = {"PATH": os.defpath}
        try:
            # In its own group, so that what kills our group does not reach it.
            self._pid = spawn_detached("/bin/sh", argv, env, actions)
        finally:
            os.close(read_fd)

    def add(self, group: int) -> None:
        """Start watching a group."""
        self._write(f"+ {group}\n")

    def add_descendants(self, mark: str, cgroup_abs: str) -> None:
        """Start watching all processes with a variable in their environment, or in a cgroup."""
        self._write(f"m {mark}\n")
        if cgroup_abs:
            self._write(f"c {cgroup_abs}\n")

    def remove(self, group: int) -> None:
        """Stop watching a group."""
        self._write(f"- {group}\n")

    def close(self) -> None:
        """End the watchdog: no group is left."""
        self._write(".\n")
        os.close(self._fd)
        os.waitpid(self._pid, 0)

    def _write(self, line: str) -> None:
        try:
            os.write(self._fd, line.encode("ascii"))
        except OSError:
            return  # somebody killed the watchdog
