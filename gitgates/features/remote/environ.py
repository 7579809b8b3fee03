"""Environment variables for servers that gates share."""

from __future__ import annotations

NAMES = (
    (
        "GITGATES_REMOTE",
        "you",
        "`0`: every gate runs here; `1`: gates with `remote` run on the server, if it has jobs",
    ),
    ("NETRC", "you", "the file with user names and passwords of servers, instead of `~/.netrc`"),
    (
        "https_proxy",
        "you",
        "the proxy for servers of `[tool.gitgates.remote]`; for http: `http_proxy`",
    ),
    ("no_proxy", "you", "hosts that need no proxy, separated by commas"),
)
