"""Files that look like secrets, by name or first bytes, and variables that do."""

from __future__ import annotations

import re

_NAMES = {
    **dict.fromkeys((".env", ".envrc"), "variables with secrets"),
    **dict.fromkeys(("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"), "a private key"),
    **dict.fromkeys((".netrc", "_netrc", ".pypirc", ".pgpass", ".htpasswd"), "passwords"),
    **dict.fromkeys((".git-credentials", ".dockercfg", ".vault-token"), "passwords"),
    **dict.fromkeys((".my.cnf", ".s3cfg", ".boto", ".vault_pass", "kubeconfig"), "passwords"),
    **dict.fromkeys(("credentials", "credentials.json", "client_secret.json"), "credentials"),
    "credentials.toml": "credentials",
    "master.key": "a key",
}
_ENDINGS = {
    **dict.fromkeys((".p12", ".pfx", ".ppk", ".jks", ".keystore"), "a private key"),
    ".kdbx": "passwords",
    **dict.fromkeys((".tfstate", ".tfvars"), "secrets of Terraform"),
}
_SUFFIXES = tuple(_ENDINGS)
_ENV = ".env."  # for one environment, such as .env.production
_TEMPLATES = (".example", ".sample", ".template", ".dist", ".defaults")
_HEAD_BYTES = 8192
_HEADS = (
    (rb"^[ \t\xef\xbb\xbf]*-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----", "a private key"),
    (rb"^AGE-SECRET-KEY-1", "a private key"),
    (rb"^PuTTY-User-Key-File-", "a private key"),
    (rb'^[ \t]*(?:\{[ \t]*)?"type"\s*:\s*"service_account"', "the key of a service account"),
    (rb"^[^#;\n]*:_(?:authToken|password|auth)\s*=\s*[^$\s]", "the token of a registry"),
)
_FORMATS = tuple((re.compile(pattern, re.MULTILINE), what) for pattern, what in _HEADS)
_VARIABLE = re.compile(
    r"(^|_)(API_?KEY|ACCESS_KEY|AUTH|CREDENTIALS?|PASS|PASSWD|PASSWORD|PAT|SECRET|TOKEN)S?(_|$)",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"://[^\s/@]*:[^\s/@]+@")


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret by its name, or has a URL with a password."""
    return bool(_VARIABLE.search(name) or _PASSWORD.search(value))


def secret_named(path: str) -> str:
    """Return what secret a file seems to contain, by its name; empty: none."""
    name = path.rpartition("/")[2].lower()
    if name in _NAMES:
        return _NAMES[name]
    if name.endswith(_SUFFIXES):
        return _ENDINGS[name[name.rindex(".") :]]
    return _NAMES[".env"] if name.startswith(_ENV) and not name.endswith(_TEMPLATES) else ""


def secret_in(content: bytes) -> str:
    """Return what secret a file seems to contain, by its first bytes; empty: none."""
    head = content[:_HEAD_BYTES]
    return next((what for pattern, what in _FORMATS if pattern.search(head)), "")
