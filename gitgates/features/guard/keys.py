"""The table `[tool.gitgates.guard]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_ANSWER = v.one_of("deny", "ask", "warn", "off")


def _rule(name: str, default: str, meaning: str) -> Key:
    return Key(name, _ANSWER, f'"{default}"', weaker=("off", "warn", "ask")).means(meaning)


_KEYS = (
    Key("enabled", v.FLAG, "true", weaker="off").means(
        "Whether the guard checks an agent's commands and edits."
    ),
    _rule(
        "no_verify",
        "deny",
        "`git commit --no-verify`, `-n`, and the equivalents of other commands.",
    ),
    _rule(
        "hooks_path",
        "deny",
        "Setting `core.hooksPath`: by `git -c`, `git config` or a variable such as `GIT_CONFIG_*`.",
    ),
    _rule(
        "skip_variables",
        "deny",
        "Variables that skip hooks or gates: `GITGATES=0`, `GITGATES_SKIP`, `SKIP`, `HUSKY=0`, "
        "`LEFTHOOK=0`, `PREK_SKIP` and others; and `GITGATES_RIG`, `GITGATES_ROLE` and "
        "`GITGATES_AGENT`, which select the advice to run.",
    ),
    _rule("uninstall", "deny", "`gitgates uninstall-hooks`, `pre-commit uninstall` and the like."),
    _rule(
        "person_verbs",
        "deny",
        "Commands of gitgates that are reserved for a person, without a token: `approve`, "
        "`intent approve-scope`, `trace prune`, and in the strict form `review skip`.",
    ),
    _rule("hooks_folder", "deny", "Changing git's hooks folder."),
    _rule("agent_settings", "deny", "Changing the agent's settings, which contain its hooks."),
    _rule(
        "gate_settings",
        "ask",
        "Changing `[tool.gitgates]`, `gitgates.toml`, `gitgates.local.toml` or "
        "`.pre-commit-config.yaml`.",
    ),
    _rule("intents_file", "ask", "Changing the file with the intents."),
    _rule("state_folder", "deny", "Changing the state of gitgates in the git folder."),
    _rule(
        "git_folder",
        "deny",
        "Moving or removing `.git`, changing `.git/config` other than with git, or setting "
        "`core.worktree` or `core.bare`.",
    ),
    _rule("git_exclude", "ask", "Changing `.git/info/exclude`, or setting `core.excludesFile`."),
    _rule(
        "hidden_files", "deny", "`git update-index` with `--skip-worktree` or `--assume-unchanged`."
    ),
    _rule("reviewer_files", "ask", "Changing a reviewing agent, skill or command."),
    _rule("nested_agent", "ask", "Starting an agent that does not ask for permission."),
    _rule(
        "unreadable",
        "ask",
        "A command that cannot be parsed, or a missing parser, if a rule may apply to it.",
    ),
)

TABLE = Table(
    name="guard",
    keys=_KEYS,
    meaning="The response if an agent is about to bypass the gates. `deny`: the tool call is "
    "refused. `ask`: the person is asked; if nobody can answer, it is refused. `warn`: the "
    "agent is warned. `off`: nothing."
    " [More](../how-to/guard.md).",
    example='no_verify = "ask".',
)
