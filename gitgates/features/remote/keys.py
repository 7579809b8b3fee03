"""The table `[tool.gitgates.remote]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key("verdicts", v.TEXT, '""').means(
        "The URL of an HTTP cache, such as `https://cache.example.com/gitgates`, from which signed "
        "proofs are read: bazel-remote, nginx with DAV, or any server with GET and PUT."
    ),
    Key("write", v.one_of("ci", "always", "never"), '"ci"').means(
        "Who writes to it: `ci`, only where the variable `CI` is set."
    ),
    Key("ca", v.TEXT, '""').means(
        "A file with the certificates that the server's must be signed by. Default: the system's."
    ),
    Key("cert", v.TEXT, '""').means("A file with the certificate of this client."),
    Key("key", v.TEXT, '""').means("A file with its private key."),
    Key("netrc", v.TEXT, '""').means(
        "A file with user names and passwords of servers. Default: `~/.netrc`."
    ),
)

TABLE = Table(
    name="remote",
    keys=_KEYS,
    meaning="Servers that gates share. [More](../how-to/proofs.md#carry-proofs-by-a-cache).",
    example='verdicts = "https://cache.example.com/gitgates".',
)
