"""What a command has read, written and connected to, by its system calls in strace's order.

Once the command itself has created a path, it does not depend on it; it does depend on a path that
it read before, or changed in part. If something cannot be known, the run cannot be reused, and the
reason is recorded.
"""

from __future__ import annotations

import os
import re
from itertools import islice

from gitgates.core.record import Record
from gitgates.observed import syscalls
from gitgates.observed.lines import ENDED, NOT_READ, calls, file_of_fd, paths, unescaped
from gitgates.observed.syscalls import ABSENT, CONTENT, LISTED, THERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gitgates.observed.lines import NamedPath, SystemCall

_MOST_PATHS = 200_000
_MOST_HELD = 10_000  # calls of a process whose parent is not yet known
_MOST_LINKS = 40  # in one path. Source: path_resolution(7)
_LEFT_OUT = ("/proc/", "/sys/", "/dev/")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - it may contain the user's files
# A process's folders and files, under another name.
_MAGIC = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|fd/\d+)/.|/dev/fd/\d+/.")


class Observation(Record):
    """What was seen of one run. Paths are absolute, and may contain `..` and links."""

    reads: Mapping[str, int]  # path → how it was read, in the order of first reads
    written: frozenset[str]  # by the run itself
    made: frozenset[str]  # those of `written` that it created, replaced or removed
    unreusable: str  # why a pass cannot be reused; empty: it can
    spoilt: str  # why the result does not count: without strace, it might differ


def read_output(lines: Iterable[str], cwd_abs: str) -> Observation:
    """Return what strace's output shows."""
    reads = _Reads(cwd_abs)
    for call in calls(lines):
        reads.take(call)
        if reads.are_too_many:
            why = f"reads and writes more than {_MOST_PATHS:,} files"
            return Observation({}, frozenset(), frozenset(), why, "")
    return reads.observation()


def joined(observations: Sequence[Observation]) -> Observation:
    """Return the joint observation of several independent commands."""
    if len(observations) == 1:
        return observations[0]
    reads: dict[str, int] = {}
    for observation in observations:
        for path, how in observation.reads.items():
            reads[path] = reads.get(path, 0) | how
    return Observation(
        reads=reads,
        written=frozenset().union(*(each.written for each in observations)),
        made=frozenset().union(*(each.made for each in observations)),
        unreusable=next(filter(None, (each.unreusable for each in observations)), ""),
        spoilt=next(filter(None, (each.spoilt for each in observations)), ""),
    )


def is_below(path: str, tops: Collection[str]) -> bool:
    """Return whether a path is one of `tops`, or in one of them."""
    while path and path not in tops:
        path = path.rpartition("/")[0]
    return bool(path)


class _Reads:
    """Accumulates what a run has read and written, one call at a time."""

    def __init__(self, cwd_abs: str) -> None:
        self._cwd_abs = cwd_abs
        self._started = self._ended = False
        # Running process → its folder, in a list that its threads share.
        self._cwds: dict[int, list[str]] = {}
        self._held: dict[int, list[SystemCall]] = {}
        self._reads: dict[str, int] = {}
        self._written: set[str] = set()
        self._made: set[str] = set()
        self._links: dict[str, str] = {}  # links made by the run → their targets
        self._names: dict[str, set[str]] = {}  # file → other names by which it was opened
        self._sockets: set[str] = set()  # the run's own addresses, except for files
        self._unreusable = self._spoilt = ""
        self.are_too_many = False  # too many paths: the rest need not be read
        self._takes: dict[str, Callable[[SystemCall], None]] = {
            **dict.fromkeys(("open", "openat", "openat2", "creat"), self._take_open),
            **dict.fromkeys(("rename", "renameat", "renameat2"), self._take_rename),
            **dict.fromkeys(("fork", "vfork", "clone", "clone3"), self._take_child),
            **dict.fromkeys(("connect", "sendto", "sendmsg", "sendmmsg"), self._take_address),
            **dict.fromkeys(("bind", "getsockname"), self._take_own_address),
            **dict.fromkeys(syscalls.ROLES_OF, self._take_paths),
            "unshare": self._take_unshare,
        }

    def take(self, call: SystemCall) -> None:
        """Take the next call."""
        if not self._cwds and not self._ended:
            self._cwds[call.pid] = [self._cwd_abs]
        if call.name == NOT_READ:
            self._refuse("strace's output cannot be parsed")
        elif call.pid not in self._cwds:
            self._hold(call)
        elif call.name == ENDED:
            del self._cwds[call.pid]
            self._ended = not self._cwds
        elif call.result is not None:  # else the call is repeated, or the process ended in it
            take = self._takes.get(call.name)
            if take is None or call.name in syscalls.JUDGED:
                self._judge(call)
            if take:
                take(call)

    def _judge(self, call: SystemCall) -> None:
        """Record a call after which it is unknown what the run depends on."""
        for text, why in syscalls.UNREUSABLE.get(call.name, {}).items():
            if text in call.args and not call.error:
                self._refuse(why)
        for text, why in syscalls.SPOILS.get(call.name, {}).items():
            if text in call.args:
                self._spoil(why)
        if call.name not in self._takes.keys() | syscalls.JUDGED:
            self._refuse(f"calls {call.name}(2), which is not known here")

    def _hold(self, call: SystemCall) -> None:
        """Keep a call until the process's parent, and so its folder, is known."""
        waiting = self._held.setdefault(call.pid, [])
        waiting.append(call)
        if len(waiting) > _MOST_HELD:
            self._refuse("has a process whose parent is not known")
            waiting.clear()

    def observation(self) -> Observation:
        """Return the observation; call it at the end."""
        if not self._started:
            self._spoil("it could not be started under strace")
        elif self._cwds or self._held:
            self._spoil("strace ended before it: it was killed, or the disk is full")
        return Observation(
            reads=self._reads,
            written=frozenset(self._written | self._made),
            made=frozenset(self._made),
            unreusable=self._unreusable,
            spoilt=self._spoilt,
        )

    def _refuse(self, why: str) -> None:
        self._unreusable = self._unreusable or why

    def _spoil(self, why: str) -> None:
        self._spoilt = self._spoilt or why

    # Paths.

    def _paths(self, call: SystemCall, count: int) -> list[str]:
        """Return a call's first `count` paths; later arguments are not paths."""
        if call.name in syscalls.ON_FD:
            return [file_of_fd(call.args)]
        absolute = [self._absolute(call, path) for path in islice(paths(call.args), count)]
        return absolute if absolute and absolute[0] else [file_of_fd(call.args), *absolute[1:]]

    def _absolute(self, call: SystemCall, path: NamedPath) -> str:
        if not path.is_readable and call.error != "EFAULT":
            self._refuse("runs a program whose memory strace must not read")
        if not path.name or path.name.startswith("/"):
            return _tidy(path.name)
        is_folder = path.folder.startswith("/")  # a descriptor may refer to something else
        return _tidy(f"{path.folder if is_folder else self._cwds[call.pid][0]}/{path.name}")

    def _look(self, path: str, how: int) -> None:
        """Record that a path was read, unless the run made it."""
        if not path.startswith("/") or _is_left_out(path):
            if _MAGIC.match(path):
                self._refuse(f"reads through {path}")
            return
        path = self._without_own_folders(self._through_own_links(path))
        if not is_below(path, self._made):
            self._reads[path] = self._reads.get(path, 0) | how
            self._limit()

    def _change(self, path: str, *, replaced: bool) -> None:
        """Record that the run changed a path; `replaced`: created, overwrote or removed it."""
        path = self._without_own_folders(path)
        if path.startswith("/") and not _is_left_out(path) and not is_below(path, self._made):
            (self._made if replaced else self._written).add(path.rstrip("/"))
            if "/../" in path:
                self._written.add(os.path.normpath(path))
            self._limit()

    def _limit(self) -> None:
        paths_of = (self._reads, self._made, self._written, self._names)
        if sum(map(len, paths_of)) > _MOST_PATHS:
            self.are_too_many = True

    def _through_own_links(self, path: str) -> str:
        """Return a path's target through links that the run made."""
        for _ in range(_MOST_LINKS if self._links else 0):
            head, rest = path, ""
            while head and head not in self._links:
                head, _, name = head.rpartition("/")
                rest = f"/{name}{rest}"
            if not head:
                break
            path = _tidy(self._links[head] + rest)
        return path

    def _without_own_folders(self, path: str) -> str:
        """Return a path without `FOLDER/..` for folders that the run made."""
        head, mark, rest = f"{path}/".partition("/../")
        while mark and is_below(head, self._made) and head not in self._links:
            path = f"{head.rpartition('/')[0]}/{rest}".rstrip("/") or "/"
            head, mark, rest = f"{path}/".partition("/../")
        return path

    # Calls with paths

    def _take_paths(self, call: SystemCall) -> None:
        roles = syscalls.ROLES_OF[call.name]
        call_paths = self._paths(call, len(roles))
        for role, path in zip(roles, call_paths, strict=True):
            if call.error:
                is_gone = call.error == "ENOENT" and len(roles) == 1 and role != "run"
                self._look(path, ABSENT if is_gone else 0)
            elif role != "none":
                self._look(path, syscalls.HOW[role])
                if role in syscalls.CHANGES:
                    self._change(path, replaced=syscalls.CHANGES[role])
        if not call.error:
            self._follow(call, call_paths)

    def _follow(self, call: SystemCall, call_paths: list[str]) -> None:
        """Record the effects of a successful call."""
        match call.name:
            case "execve" | "execveat":
                self._started = True
            case "chdir" | "fchdir":
                self._cwds[call.pid][0] = call_paths[0] or "/"
            case "symlink" | "symlinkat":
                target = next(paths(call.args)).name
                self._links[call_paths[1]] = os.path.join(os.path.dirname(call_paths[1]), target)
            case "unlink" | "unlinkat":
                self._links.pop(call_paths[0], None)
            case "getdents" | "getdents64":
                for name in self._names.get(call_paths[0], ()):
                    self._look(name, THERE | LISTED)
            case _:
                pass

    def _take_open(self, call: SystemCall) -> None:
        file = next(paths(call.args))
        flags = "O_CREAT|O_TRUNC" if call.name == "creat" else call.args[file.end :]
        if "RESOLVE_IN_ROOT" in flags:
            file = file._replace(name=file.name.lstrip("/"))
        path = self._absolute(call, file)
        places = {path, call.opened or path}
        if call.opened and call.opened != path:
            self._names.setdefault(call.opened, set()).add(path)
            self._limit()
        is_new = "O_CREAT" in flags and self._reads.get(path, 0) & (THERE | ABSENT) == ABSENT
        if call.error:
            self._look(path, ABSENT if call.error == "ENOENT" else 0)
        elif "O_TMPFILE" in flags:  # a file without a name
            self._look(path, THERE)
        elif is_new or "O_TRUNC" in flags or "O_CREAT|O_EXCL" in flags:
            if "O_EXCL" in flags:
                self._look(path, ABSENT)
            for place in places:
                self._change(place, replaced=True)
        else:
            self._take_opened(places, flags)

    def _take_opened(self, places: Iterable[str], flags: str) -> None:
        """Record that a file was opened that may have existed; if readable, its bytes count."""
        how = 0 if "O_CREAT" in flags else THERE
        how |= 0 if "O_WRONLY" in flags else CONTENT
        for place in places:
            if how:
                self._look(place, how)
            if any(flag in flags for flag in ("O_CREAT", "O_WRONLY", "O_RDWR")):
                self._change(place, replaced=False)

    def _take_rename(self, call: SystemCall) -> None:
        old, new = self._paths(call, 2)
        is_new = is_below(old, self._made) and "RENAME_EXCHANGE" not in call.args
        self._look(old, 0 if call.error else THERE | CONTENT)
        if call.error or "RENAME_EXCHANGE" in call.args:
            self._look(new, 0)
        if not call.error:
            self._rename_links(old, new)
            self._change(old, replaced=is_new)
            self._change(new, replaced=is_new)

    def _rename_links(self, old: str, new: str) -> None:
        """Record the new name of a link, or of a folder with links in it."""
        for link in [link for link in self._links if is_below(link, (old,))]:
            target = self._links.pop(link)
            if link != old and target.startswith(f"{old}/"):
                target = new + target.removeprefix(old)
            self._links[new + link.removeprefix(old)] = target

    # Processes, and what they connect to

    def _take_child(self, call: SystemCall) -> None:
        if call.result and call.result > 0:
            cwd = self._cwds[call.pid]
            self._cwds[call.result] = cwd if "CLONE_FS" in call.args else [*cwd]
            for waiting in self._held.pop(call.result, ()):
                self.take(waiting)

    def _take_unshare(self, call: SystemCall) -> None:
        self._cwds[call.pid] = [*self._cwds[call.pid]]

    def _take_address(self, call: SystemCall) -> None:
        for address in addresses(call.args):
            place = self._place(call, address)
            if place in self._sockets or is_below(place, self._made):
                continue
            if call.error == "ENOENT" and place.startswith("/"):
                self._look(place, ABSENT)
            else:
                self._refuse(f"connects to {place}")

    def _take_own_address(self, call: SystemCall) -> None:
        for address in addresses("" if call.error else call.args):
            place = self._place(call, address)
            if call.name == "bind" and place.startswith("/"):
                self._look(place, ABSENT)
                self._change(place, replaced=True)
            self._sockets.add(place)

    def _place(self, call: SystemCall, address: str) -> str:
        is_other = address.startswith(("@", "AF_")) or address.rpartition(":")[2].isdigit()
        return address if is_other else _tidy(os.path.join(self._cwds[call.pid][0], address))


def _is_left_out(path: str) -> bool:
    leads_out = path.startswith(_SHARED_MEMORY) or "/../" in path
    return f"{path}/".startswith(_LEFT_OUT) and not leads_out


def _tidy(path: str) -> str:
    """Return a path without `//` and `.`; `..` stays, because a link may precede it."""
    while "//" in path or "/./" in path:
        path = path.replace("//", "/").replace("/./", "/")
    return path[:-1] if path.endswith("/.") else path


_ADDRESS = re.compile(r'\{sa_family=(\w+)(?:, ((?:[^{}"]|"(?:[^"\\]|\\.)*")*))?\}')
_PATH = re.compile(r'sun_path=(@?)"((?:[^"\\]|\\.)*)"')
_PORT = re.compile(r"port=htons\((\d+)\)")
_HOST = re.compile(r'"([0-9a-fA-F:.]+)"')
_HERE = re.compile(r"127\.|::1$|::ffff:127\.|0\.0\.0\.0$|::$")
_SILENT = ("AF_UNSPEC", "AF_NETLINK")  # takes back an address; asks the kernel


def addresses(args: str) -> Iterator[str]:
    """Yield the addresses in a call's arguments.

    Each is a path, which may be relative, `@NAME`, `HOST:PORT` with `localhost` for this machine,
    or the name of another address family.
    """
    for family, rest in _ADDRESS.findall(args):
        path, port, host = _PATH.search(rest), _PORT.search(rest), _HOST.search(rest)
        if path:
            yield path[1] + unescaped(path[2])
        elif port and host:
            yield f"{'localhost' if _HERE.match(host[1]) else host[1]}:{port[1]}"
        elif family not in _SILENT:
            yield family
