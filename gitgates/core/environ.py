"""The environment names that gitgates reads or sets. The only reader of `os.environ`.

Those of agents are in `hosts`; those of one feature, in `environ.py` of its folder.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


# (name, who sets it: you, git, sudo, pre-commit, CI, gitgates; what it does)
NAMES: tuple[tuple[str, str, str], ...] = (
    ("GITGATES", "you", "`0` disables all gitgates hooks for this command"),
    ("GITGATES_SKIP", "you", "gates to skip, separated by commas; required ones still run"),
    ("SKIP", "you", "the same, as the pre-commit framework calls it"),
    ("NO_COLOR", "you", "any value: disable colours"),
    ("FORCE_COLOR", "you", "any value: enable colours even if the output is not a terminal"),
    ("TERM", "you", "`dumb`: disable colours and the live display"),
    ("PATH", "you", "where programs are found"),
    ("SUDO_UID", "sudo", "the user whose repositories root trusts, as in git"),
    ("VIRTUAL_ENV", "pre-commit", "reset for the gates if pre-commit has set it to itself"),
    ("GIT_DIR", "git", "the repository, if not found from the current folder"),
    ("GIT_WORK_TREE", "git", "the root, if not found from the current folder"),
    ("GIT_INDEX_FILE", "git", "the index being committed"),
    ("GIT_EXEC_PATH", "git", "the folder of its own programs, which gates do not find first"),
    ("GIT_OBJECT_DIRECTORY", "git", "the objects of the repository, if they are elsewhere"),
    ("GIT_CONFIG_GLOBAL", "you", "the user settings of git, instead of those in the home folder"),
    (
        "GIT_CONFIG_COUNT",
        "git",
        "settings for one command; gitgates adds to them for its git calls",
    ),
    ("HOME", "you", "the home folder, with user settings of git and agents; ignored if relative"),
    ("XDG_CONFIG_HOME", "you", "the same, if set"),
    ("XDG_CACHE_HOME", "you", "where private checkouts and headless runs are; default: `~/.cache`"),
    ("XDG_STATE_HOME", "you", "where the memory of files is; `~/.local/state`, if it is not set"),
    ("TMPDIR", "you", "a folder for temporary files: removing these is no loss of work"),
    ("GITHEAD_*", "git", "the parents of a merge, while it runs pre-merge-commit"),
    ("PRE_COMMIT", "pre-commit", "set if the pre-commit framework runs gitgates"),
    ("PRE_COMMIT_RUNNING_LEGACY", "pre-commit", "set if it runs the gitgates hook before its own"),
    ("PREK_RUNNING_LEGACY", "pre-commit", "the same, of prek"),
    ("PRE_COMMIT_FROM_REF", "pre-commit", "the old end of a pushed or checked-out range"),
    ("PRE_COMMIT_TO_REF", "pre-commit", "the new end of it"),
    ("PRE_COMMIT_REMOTE_NAME", "pre-commit", "the remote pushed to"),
    ("PRE_COMMIT_REMOTE_URL", "pre-commit", "its address"),
    ("PRE_COMMIT_LOCAL_BRANCH", "pre-commit", "the pushed ref"),
    ("PRE_COMMIT_REMOTE_BRANCH", "pre-commit", "the remote ref"),
    ("PRE_COMMIT_CHECKOUT_TYPE", "pre-commit", "post-checkout: 1 for a branch, 0 for files"),
    ("PRE_COMMIT_IS_SQUASH_MERGE", "pre-commit", "post-merge: 1 for a squash"),
    ("PRE_COMMIT_REWRITE_COMMAND", "pre-commit", "post-rewrite: `amend` or `rebase`"),
    ("PRE_COMMIT_PRE_REBASE_UPSTREAM", "pre-commit", "pre-rebase: the upstream to rebase onto"),
    ("PRE_COMMIT_PRE_REBASE_BRANCH", "pre-commit", "pre-rebase: the branch, if named"),
    ("PRE_COMMIT_COMMIT_MSG_SOURCE", "pre-commit", "prepare-commit-msg: the source of the message"),
    ("PRE_COMMIT_COMMIT_OBJECT_NAME", "pre-commit", "prepare-commit-msg: the amended commit"),
    (
        "GITGATES_REUSE",
        "you",
        "`0`: run every gate; `audit`: also run gates whose passes would be reused, and compare",
    ),
    (
        "GITGATES_POOL",
        "you",
        "the folder of the job slots that all runs share, as an absolute path; `0`: wait for none",
    ),
    ("RUSTUP_HOME", "you", "the folder of rustup, whose settings name the toolchain of `cargo`"),
    ("RUSTUP_TOOLCHAIN", "you", "the toolchain of `cargo`, which passes are reused for"),
    ("GITHUB_ACTIONS", "CI", "`true`: `gitgates run` annotates failures on their lines"),
    ("GITGATES_PAUSE_AT", "you", "for gitgates' own tests: a step to pause at"),
    ("GITGATES_HOOK", "gitgates", "for each gate: the hook"),
    ("GITGATES_CHECKOUT", "gitgates", "for each process in a private checkout: so it can be ended"),
    ("GITGATES_RUN", "gitgates", "for each gate: the run, so it can be ended with it"),
    (
        "GITGATES_STRACE",
        "gitgates",
        "for each command of a gate that is observed: so it can be ended with its processes",
    ),
    ("GITGATES_RESOURCES", "gitgates", "for each gate that has `resources`: these"),
    ("GITGATES_HEADLESS", "gitgates", "for an agent: the headless run it is part of"),
    ("GITGATES_ACTIVE", "gitgates", "the running hooks, to prevent recursion"),
)


def read() -> Mapping[str, str]:
    """Return a copy of the environment as it is now."""
    return dict(os.environ)


def set_default(name: str, value: str) -> None:
    """Set a variable of this process that a library reads, unless somebody has set it."""
    os.environ.setdefault(name, value)


def is_ci(env: Mapping[str, str]) -> bool:
    """Return whether this runs in CI, by the variable that all CI hosts set."""
    return env.get("CI", "").lower() not in ("", "0", "false", "no", "off")


def is_off(env: Mapping[str, str]) -> bool:
    """Return whether the person switched gitgates off for this command."""
    return env.get("GITGATES") == "0"


def skipped_gates(env: Mapping[str, str]) -> dict[str, str]:
    """Return gate name → the environment variable that skips it."""
    skipped: dict[str, str] = {}
    for name in ("SKIP", "GITGATES_SKIP"):
        for gate in env.get(name, "").split(","):
            if gate.strip():
                skipped[gate.strip()] = name
    return skipped
