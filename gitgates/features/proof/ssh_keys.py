"""Sign and verify with ssh-keygen, with git's keys and settings for signing commits.

It asks for nothing: ssh-keygen runs without a terminal, for a few seconds at most. A key with a
passphrase must be in the agent. Source: ssh-keygen(1), git-config(1), git's gpg-interface.c.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import time
from contextlib import contextmanager

from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.features.proof.environ import KEY
from gitgates.features.proof.statement import RefusedError
from gitgates.git.repo import nul_split
from gitgates.proc.call import call_detached
from gitgates.store.files import make_folder, open_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.git.repo import Repo
    from gitgates.proc.call import CompletedProcess

NAMESPACE = "gitgates"
FOLDER = "proof"  # of the shared state
LIMIT_S = 5.0  # for one signature; people do not wait longer for a hook
_SETTINGS = r"^(gpg\.format|gpg\.ssh\..*|user\.(signingkey|email))$"
_LITERALS = ("key::", "ssh-", "ecdsa-", "sk-")
_SET_KEY = (
    "Set git's signing key: git config gpg.format ssh, and git config user.signingKey FILE; "
    f"in CI, {KEY}."
)
# What ssh-keygen says → what to do.
_HINTS = {
    "incorrect passphrase": "It cannot be asked for here. Add the key to the agent: ssh-add FILE",
    "too open": "Make it readable for you only: chmod 600 FILE",
    "No private key found": "Add the key to the agent: ssh-add FILE",
    "No user exists": "ssh-keygen needs an entry for this user in /etc/passwd.",
    "No such file": "Name the private key, or the public key of one that is in the agent.",
    "unknown option": "It needs OpenSSH 8.2 or later.",
    "illegal option": "It needs OpenSSH 8.2 or later.",
    "Unsupported operation": "It needs OpenSSH 8.2 or later.",
}
_PROBE = b"gitgates: which key is it?\n"


class SshSettings(Record):
    """What git's configuration and the environment say about ssh signatures."""

    program: str
    key: str  # a file, or a public key as text; empty: none is set
    email: str
    allowed_signers: str  # absolute path of a file; empty: none is set
    revoked: str  # absolute path of a file; empty: none is set
    revoked_keys: bytes | None = None  # its merged content; None: the file on disk counts


class SigningKey(Record):
    """A key to sign with, and the identity that it signs for."""

    settings: SshSettings
    fingerprint: str
    identity: str


def settings_of(repo: Repo) -> SshSettings:
    """Return the settings of a repository. Raises: GitError."""
    completed = repo.git.ask("config", "--null", "--get-regexp", _SETTINGS)
    pairs = (entry.partition("\n") for entry in nul_split(completed.stdout))
    values = {name: value for name, _newline, value in pairs}
    key = repo.env.get(KEY, "")
    if not key and values.get("gpg.format") == "ssh":
        key = values.get("user.signingkey", "")
        if not key and (command := values.get("gpg.ssh.defaultkeycommand")):
            key = _default_key(command, repo)
    return SshSettings(
        program=values.get("gpg.ssh.program") or "ssh-keygen",
        key=key if key.startswith(_LITERALS) else _path(key, repo),
        email=values.get("user.email", ""),
        allowed_signers=_path(values.get("gpg.ssh.allowedsignersfile", ""), repo),
        revoked=_path(values.get("gpg.ssh.revocationfile", ""), repo),
    )


def _default_key(command: str, repo: Repo) -> str:
    """Return the first key that a command prints; as git does, run it by a shell in the root."""
    argv = ("sh", "-c", f'cd "$0" && {command}', repo.root_abs)
    try:
        printed = call_detached(argv, _env(repo.env), b"", LIMIT_S).stdout
    except (OSError, TimeoutError):
        return ""
    first = os.fsdecode(printed.partition(b"\n")[0]).strip()
    return first if first.startswith(_LITERALS) else ""


def _path(value: str, repo: Repo) -> str:
    if value.startswith("~/"):
        value = repo.env.get("HOME", "~") + value[1:]
    return value and os.path.normpath(os.path.join(repo.root_abs, value))


def signing_key(repo: Repo, allowed_signers: bytes) -> SigningKey:
    """Return the key to sign with, and the identity that it signs for.

    If the allowed signers list several identities for the key, `user.email` comes first. If they
    list none, it is `user.email`.

    Raises: ConfigError if there is no key, or it cannot be used; GitError.
    """
    settings = settings_of(repo)
    if not settings.key:
        raise ConfigError("there is no key to sign proofs with", _SET_KEY)
    armored = sign(repo, settings, _PROBE)
    with _files(repo, signature=armored, allowed=allowed_signers) as names:
        args = ("find-principals", "-s", names["signature"], "-f", names["allowed"])
        output = _run(repo, settings, args, b"").stdout if allowed_signers else b""
    principals = [name for line in os.fsdecode(output).splitlines() for name in line.split(",")]
    single = [name for name in principals if not {*"*?!"} & {*name}]
    identity = settings.email if settings.email in principals or not single else single[0]
    if not identity:
        raise ConfigError(
            f"the key {settings.key} has no identity",
            "Set user.email, or add the key to the allowed signers.",
        )
    return SigningKey(settings, _fingerprint(armored), identity)


def sign(repo: Repo, settings: SshSettings, message: bytes) -> bytes:
    """Return a message's armored signature. Raises: ConfigError if the key cannot sign it."""
    literal = settings.key if settings.key.startswith(_LITERALS) else ""
    try:
        with _files(repo, key=literal.removeprefix("key::").encode()) as names:
            file = names["key"] if literal else settings.key
            completed = _run(repo, settings, ("sign", "-n", NAMESPACE, "-f", file), message)
    except (OSError, TimeoutError) as error:
        raise _not_run(settings, error) from error
    if completed.exit_status or not completed.stdout:
        output = os.fsdecode(completed.stderr).strip()
        part = next((part for part in _HINTS if part in output), "")
        lines = output.splitlines() or [f"exit status {completed.exit_status}"]
        # After an unknown option, it prints its usage.
        why = next((line for line in lines if part and part in line), lines[-1])
        why = why.removeprefix("Enter passphrase: ")  # nobody could see that prompt
        text = f"{settings.program} cannot sign with {settings.key}: {why}"
        raise ConfigError(text, _HINTS.get(part, "").replace(" FILE", f" {settings.key}"))
    return completed.stdout


def verify(
    repo: Repo,
    settings: SshSettings,
    *,
    message: bytes,
    signature: bytes,
    identity: str,
    allowed_signers: bytes,
) -> None:
    """Verify that a message was signed with an identity's key.

    Raises: RefusedError with ssh-keygen's message if it was not, or why it could not run.
    """
    try:
        contents = {"signature": signature, "allowed": allowed_signers}
        contents |= {} if settings.revoked_keys is None else {"revoked": settings.revoked_keys}
        with _files(repo, **contents) as names:
            args = ("verify", "-n", NAMESPACE, "-I", identity, "-s", names["signature"])
            revoked_abs = names.get("revoked", settings.revoked)
            options = ("-r", revoked_abs) if revoked_abs else ()
            args = (*args, "-f", names["allowed"], *options)
            completed = _run(repo, settings, args, message)
    except (OSError, TimeoutError) as error:
        raise RefusedError(f"it cannot be verified: {_not_run(settings, error)}") from error
    if completed.exit_status:
        output = os.fsdecode(completed.stderr + completed.stdout)
        output = output.replace(names["allowed"], "allowed signers")
        # The last line says only that there is no valid signature.
        why = [line for line in output.splitlines() if "Could not" not in line]
        default = f"no key of {identity} in the allowed signers has signed it"
        if any("No user exists" in line for line in why):
            raise RefusedError(f"it cannot be verified: {'; '.join(why)}")
        raise RefusedError(f"its signature is not valid: {'; '.join(why) or default}")


def _run(
    repo: Repo, settings: SshSettings, args: tuple[str, ...], stdin: bytes
) -> CompletedProcess:
    return call_detached((settings.program, "-Y", *args), _env(repo.env), stdin, LIMIT_S)


def _env(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which ssh-keygen asks nobody, and speaks English."""
    hidden = ("SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY")
    silent = {name: value for name, value in env.items() if name not in hidden}
    return {**silent, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}


def _not_run(settings: SshSettings, error: Exception) -> ConfigError:
    why = getattr(error, "strerror", None) or error
    text = f"{settings.program} could not be run: {why}"
    hint = "Install OpenSSH 8.2 or later." if isinstance(error, FileNotFoundError) else ""
    return ConfigError(text, hint)


@contextmanager
def _files(repo: Repo, **contents: bytes) -> Iterator[dict[str, str]]:
    """Write each content to a private file; yield name → path. Raises: OSError."""
    folder_abs = f"{repo.shared_state_abs}/{FOLDER}"
    make_folder(folder_abs)
    suffix = f"{os.getpid()}-{time.monotonic_ns()}"
    names = {name: f"{folder_abs}/{name}-{suffix}" for name in contents}
    try:
        for name, content in contents.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with open(open_state(names[name], flags), "wb") as file:
                file.write(content)
        yield names
    finally:
        for path_abs in names.values():
            remove_file(path_abs)


def _fingerprint(armored: bytes) -> str:
    """Return the fingerprint of the key in a signature. Source: OpenSSH's PROTOCOL.sshsig."""
    blob = binascii.a2b_base64(b"".join(armored.split(b"\n")[1:-2]))
    start = len(b"SSHSIG") + 4
    length = int.from_bytes(blob[start : start + 4], "big")
    key = blob[start + 4 : start + 4 + length]
    digest = binascii.b2a_base64(hashlib.sha256(key).digest(), newline=False)
    return f"SHA256:{digest.decode().rstrip('=')}"
