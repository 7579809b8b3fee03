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

# Without a query or a fragment, to which no key could be added.
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
    Key("verdicts", v.ValueType(_url, {"type": "string", "pattern": f"^({_URL})?$"}), '""').means(
        "The URL of an HTTP cache, such as `https://cache.example.com/gitgates`, from which signed "
        "proofs are read: bazel-remote, nginx with DAV, or a server with GET and PUT. Empty: none."
    ),
    Key("write", v.one_of("ci", "always", "never"), '"ci"').means(
        "Who writes to it: `ci`, only where the variable `CI` is set."
    ),
    Key(
        "execution",
        v.ValueType(_server, {"type": "string", "pattern": f"^({_SERVER})?$"}),
        '""',
        weaker="any",
    ).means(
        "The server of the Remote Execution API that gates with `remote` may run on, such as "
        "`grpcs://build.example.com:443`; `grpc://` is without TLS. Empty: none. "
        "[How](../how-to/remote-execution.md)."
    ),
    Key("instance", v.TEXT, '""', weaker="any").means(
        "The name of its instance, if it has several."
    ),
    Key("platform", v.ENVIRONMENT, "{}", weaker="any").means(
        "The properties that a worker must have to run any gate: "
        '`{ OSFamily = "linux", container-image = "docker://…" }`.'
    ),
    Key("jobs", v.COUNT, "4").means(
        "How many gates run there at once, of all runs of a user on this machine; 0: none."
    ),
    Key("fallback", v.one_of("local", "fail"), '"local"').means(
        "What happens to a gate that could not run there: `local`, it runs here, once, in what is "
        "left of its `timeout`; `fail`, its status is `not-started`."
    ),
    Key("ca", v.TEXT, '""').means(
        "A file with the certificates of the authorities that may sign the server's. This path and "
        "the next three are relative to the root; `~` is the home folder. Default: the system's."
    ),
    Key("cert", v.TEXT, '""').means("A file with the certificate of this client."),
    Key("key", v.TEXT, '""').means(
        "A file with its private key, without a passphrase. Default: the key is in `cert`."
    ),
    Key("netrc", v.TEXT, '""').means(
        "A file with user names and passwords of servers, in the format of netrc. Default: what "
        "`NETRC` names, or `~/.netrc`."
    ),
    Key("not_secret", v.PATTERNS, "[]", weaker="more").means(
        "Patterns of files that look like secrets, such as keys of tests, and that gates with "
        "`remote` may send. Any other such file keeps its gate from running on another machine."
    ),
)


def _wrong(_config: Config, settings: Settings) -> Iterator[Problem]:
    """Yield a problem if there is a private key without its certificate."""
    table = settings.tables.get((_NAME,), {})
    if table.get("key") and not table.get("cert"):
        location = settings.location(_NAME, field="key")
        yield Problem(location, "there is no `cert` for it", 'Add cert = "FILE".', deferred=True)


TABLE = Table(
    name=_NAME,
    keys=_KEYS,
    meaning="Servers that gates share: [a cache](../how-to/verdict-cache.md), [gates on "
    "others](../how-to/remote-execution.md).",
    example='verdicts = "https://cache.example.com/gitgates".',
    wrong=_wrong,
)
