"""The table `[tool.gitgates.remote]`."""

from __future__ import annotations

import re

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.values import BadValue
from gitgates.core.types import Config, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.config.read import Settings

# Without a query or fragment, because a key is appended.
_URL = r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^\s?#@]*)?"
_PASSWORD = re.compile(r"(?<=//).*@")
_LAST_PORT = 65535
_NAME = "remote"
_SERVER = r"grpcs?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"


class _WithPassword(BadValue):
    """A URL with a password, which is not repeated where others may read it."""

    def part_of(self, value: object) -> object:
        """Return the URL without it."""
        return _PASSWORD.sub("…@", value) if isinstance(value, str) else value


def _url(value: object) -> str:
    expected = "a URL of http or https, such as https://cache.example.com/gitgates"
    if not isinstance(value, str):
        raise BadValue(expected)
    if _PASSWORD.search(value):
        hint = "Use netrc: `machine HOST login USER password PASSWORD` in ~/.netrc."
        raise _WithPassword("a URL without user and password, which others could read here", hint)
    match = re.fullmatch(_URL, value)
    if value and (not match or not value.isascii() or int((match[2] or ":0")[1:]) > _LAST_PORT):
        raise BadValue(expected, 'Try verdicts = "https://HOST/PATH".')
    return value.rstrip("/")


def _server(value: object) -> str:
    expected = "the address of a server, such as grpcs://build.example.com:443"
    match = re.fullmatch(_SERVER, value) if isinstance(value, str) else None
    if isinstance(value, str) and _PASSWORD.search(value):
        raise _WithPassword("an address without user and password", "Use a certificate: `cert`.")
    if value != "" and not (match and 0 < int(match[0].rpartition(":")[2]) <= _LAST_PORT):
        raise BadValue(expected, 'Try execution = "grpcs://HOST:PORT", or grpc:// without TLS.')
    return match[0] if match else ""


_KEYS = (
    Key("verdicts", v.ValueType(_url, {"type": "string", "pattern": f"^({_URL})?$"}), '""').meaning(
        "The URL of an HTTP cache of signed proofs, such as "
        "`https://cache.example.com/gitgates`: bazel-remote, nginx with DAV, or another "
        "server with GET and PUT."
    ),
    Key("write", v.one_of("ci", "always", "never"), '"ci"').meaning(
        "When to write to it: `ci`: only if the variable `CI` is set."
    ),
    Key(
        "execution",
        v.ValueType(_server, {"type": "string", "pattern": f"^({_SERVER})?$"}),
        '""',
        weaker="any",
    ).meaning(
        "The Remote Execution API server that gates with `remote` may run on, such as "
        "`grpcs://build.example.com:443`; `grpc://` is without TLS."
    ),
    Key("instance", v.TEXT, '""', weaker="any").meaning(
        "The name of its instance, if it has several."
    ),
    Key("platform", v.ENVIRONMENT, "{}", weaker="any").meaning(
        'The properties that a worker must have: `{ OSFamily = "linux", container-image = '
        '"docker://…" }`.'
    ),
    Key("jobs", v.COUNT, "4").meaning(
        "How many gates run there at once, for all runs on this machine; 0: none."
    ),
    Key("fallback", v.one_of("local", "fail"), '"local"').meaning(
        "What happens to a gate that could not run there. `local`: it runs here, once. "
        "`fail`: its status is `not-started`."
    ),
    Key("ca", v.TEXT, '""').meaning(
        "A file with the authorities' certificates. This path and the next three are "
        "relative to the root; `~` is the home folder. Default: the system's."
    ),
    Key("cert", v.TEXT, '""').meaning("A file with this client's certificate."),
    Key("key", v.TEXT, '""').meaning(
        "A file with its private key, without a passphrase. Default: the key is in `cert`."
    ),
    Key("netrc", v.TEXT, '""').meaning(
        "A file with user names and passwords. Default: the file in `NETRC`, or `~/.netrc`."
    ),
    Key("not_secret", v.PATTERNS, "[]", weaker="more").meaning(
        "Patterns of files that may be sent although they look like secrets, such as test keys."
    ),
)


def _validate(_config: Config, settings: Settings) -> Iterator[Problem]:
    """Yield a problem if there is a private key without its certificate."""
    table = settings.tables.get((_NAME,), {})
    if table.get("key") and not table.get("cert"):
        location = settings.location(_NAME, field="key")
        yield Problem(location, "has no `cert`", 'Add cert = "FILE".', deferred=True)


TABLE = Table(
    name=_NAME,
    keys=_KEYS,
    meaning="Servers that gates share: [a cache](../how-to/verdict-cache.md), [gates on "
    "others](../how-to/remote-execution.md).",
    example='verdicts = "https://cache.example.com/gitgates".',
    validate=_validate,
)
