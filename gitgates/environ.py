"""Every environment name that gitgates reads or sets. The only reader of `os.environ`."""

from __future__ import annotations

import os

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Name(Record):
    """One environment name: who sets it, and what it does."""

    name: str
    set_by: str  # you, git, sudo, pre-commit, claude, gitgates
    meaning: str


NAMES: tuple[Name, ...] = (
    Name("GITGATES", "you", "`0` switches every gitgates hook off for this command"),
    Name("GITGATES_SKIP", "you", "gates to skip, separated by commas; required ones still run"),
    Name("SKIP", "you", "the same, in the word of the pre-commit framework"),
    Name("NO_COLOR", "you", "any value: no colour in the output"),
    Name("FORCE_COLOR", "you", "any value: colour in the output even where it is no terminal"),
    Name("TERM", "you", "`dumb`: no colour and no live display"),
    Name("PATH", "you", "where programs are found"),
    Name("SUDO_UID", "sudo", "whose repositories root takes for its own, as git does"),
    Name("VIRTUAL_ENV", "pre-commit", "undone for the gates when pre-commit points it at itself"),
    Name("GIT_DIR", "git", "the repository, where the folder alone does not tell"),
    Name("GIT_WORK_TREE", "git", "the root, where the folder alone does not tell"),
    Name("GIT_INDEX_FILE", "git", "the index being committed"),
    Name("GIT_CONFIG_COUNT", "git", "settings for one command, to which our git calls add some"),
    Name("HOME", "you", "where your own files of git and Claude Code usually are"),
    Name("XDG_CONFIG_HOME", "you", "the same, where it is set"),
    Name("GITHEAD_*", "git", "the parents of a merge, while it runs pre-merge-commit"),
    Name("PRE_COMMIT", "pre-commit", "tells that the pre-commit framework runs us"),
    Name("PRE_COMMIT_RUNNING_LEGACY", "pre-commit", "tells that it runs our hook before its own"),
    Name("PREK_RUNNING_LEGACY", "pre-commit", "the same, of prek"),
    Name("PRE_COMMIT_FROM_REF", "pre-commit", "the old end of a pushed or checked-out range"),
    Name("PRE_COMMIT_TO_REF", "pre-commit", "the new end of it"),
    Name("PRE_COMMIT_REMOTE_NAME", "pre-commit", "the remote that is pushed to"),
    Name("PRE_COMMIT_REMOTE_URL", "pre-commit", "its address"),
    Name("PRE_COMMIT_LOCAL_BRANCH", "pre-commit", "the ref that is pushed"),
    Name("PRE_COMMIT_REMOTE_BRANCH", "pre-commit", "the ref that it becomes"),
    Name("PRE_COMMIT_CHECKOUT_TYPE", "pre-commit", "post-checkout: 1 for a branch, 0 for files"),
    Name("PRE_COMMIT_IS_SQUASH_MERGE", "pre-commit", "post-merge: 1 for a squash"),
    Name("PRE_COMMIT_REWRITE_COMMAND", "pre-commit", "post-rewrite: `amend` or `rebase`"),
    Name("PRE_COMMIT_PRE_REBASE_UPSTREAM", "pre-commit", "pre-rebase: what is rebased onto"),
    Name("PRE_COMMIT_PRE_REBASE_BRANCH", "pre-commit", "pre-rebase: the branch, if named"),
    Name("PRE_COMMIT_COMMIT_MSG_SOURCE", "pre-commit", "prepare-commit-msg: where it came from"),
    Name("PRE_COMMIT_COMMIT_OBJECT_NAME", "pre-commit", "prepare-commit-msg: the commit amended"),
    Name("CLAUDE_PROJECT_DIR", "claude", "where the agent's session was started"),
    Name("CLAUDE_CONFIG_DIR", "you", "where Claude Code's settings of your own are: not ~/.claude"),
    Name("CLAUDE_PLUGIN_ROOT", "claude", "where the plugin lies whose hook this is"),
    Name("CLAUDE_CODE_SESSION_ID", "claude", "the session of the agent that runs a command"),
    Name("CLAUDECODE", "claude", "tells that an agent runs a command, and not a person"),
    Name("GITGATES_PAUSE_AT", "you", "for gitgates' own tests: a step to wait at"),
    Name("GITGATES_HOOK", "gitgates", "for each gate: the hook that it runs for"),
    Name("GITGATES_RUN", "gitgates", "for each gate: the run, so that it can be ended with it"),
    Name("GITGATES_REVIEW_FILE", "gitgates", "for a second opinion: a file with what it is asked"),
    Name("GITGATES_ACTIVE", "gitgates", "the hooks that are running already, against re-entry"),
)


def read() -> Mapping[str, str]:
    """Return a copy of the environment as it is now."""
    return dict(os.environ)


def is_off(env: Mapping[str, str]) -> bool:
    """Tell whether the person switched gitgates off for this command."""
    return env.get("GITGATES") == "0"


def skipped_gates(env: Mapping[str, str]) -> dict[str, str]:
    """Return gate name → the environment name that asks to skip it."""
    found: dict[str, str] = {}
    for name in ("SKIP", "GITGATES_SKIP"):
        for gate in env.get(name, "").split(","):
            if gate.strip():
                found[gate.strip()] = name
    return found
