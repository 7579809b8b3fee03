"""The addresses of sockets, as strace writes them."""

from __future__ import annotations

import re

from gitgates.observed.lines import unescaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDRESS = re.compile(r'\{sa_family=(\w+)(?:, ((?:[^{}"]|"(?:[^"\\]|\\.)*")*))?\}')
_PATH = re.compile(r'sun_path=(@?)"((?:[^"\\]|\\.)*)"')
_PORT = re.compile(r"port=htons\((\d+)\)")
_HOST = re.compile(r'"([0-9a-fA-F:.]+)"')
_HERE = re.compile(r"127\.|::1$|::ffff:127\.|0\.0\.0\.0$|::$")
_SILENT = ("AF_UNSPEC", "AF_NETLINK")  # takes back an address; asks the kernel


def addresses(args: str) -> Iterator[str]:
    """Yield the addresses in the arguments of a call.

    A path, which may be relative; `@NAME`; `HOST:PORT`, where `localhost` is this machine; or the
    name of another family.
    """
    for family, rest in _ADDRESS.findall(args):
        path, port, host = _PATH.search(rest), _PORT.search(rest), _HOST.search(rest)
        if path:
            yield path[1] + unescaped(path[2])
        elif port and host:
            yield f"{'localhost' if _HERE.match(host[1]) else host[1]}:{port[1]}"
        elif family not in _SILENT:
            yield family
