"""The guard's rules, except those about other features' files."""

from __future__ import annotations

from gitgates.core.guarded import Rule

_BY_A_PERSON = "If it is necessary, ask the person to do it."
_BY_GATES = (
    'Fix what the gates report; for what cannot be fixed: gitgates cannot-fix GATE --reason "why".'
)
RULES = (
    Rule(
        name="no_verify",
        answer="deny",
        meaning="`git commit --no-verify`, `-n`, and the equivalents of other commands.",
        why="It skips git hooks.",
        instead=_BY_GATES,
    ),
    Rule(
        name="hooks_path",
        answer="deny",
        meaning="Setting `core.hooksPath` or `hook.*`, the hooks in git's configuration: by "
        "`git -c`, `git config` or a variable such as `GIT_CONFIG_*`.",
        why="It changes which hooks git runs.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="skip_variables",
        answer="deny",
        meaning="Variables that skip hooks or gates: `GITGATES=0`, `GITGATES_SKIP`, "
        "`SKIP`, `HUSKY=0`, `LEFTHOOK=0`, `PREK_SKIP` and others; and "
        "`GITGATES_RIG`, `GITGATES_ROLE` and `GITGATES_AGENT`, which select the "
        "advice to run.",
        why="That variable keeps gates from running.",
        instead=_BY_GATES,
    ),
    Rule(
        name="uninstall",
        answer="deny",
        meaning="`gitgates uninstall-hooks`, `pre-commit uninstall` and the like.",
        why="It removes hooks.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="person_verbs",
        answer="deny",
        meaning="gitgates commands that are reserved for a person, without a token: "
        "`approve`, `baseline write`, `intent approve-scope`, `trace prune`, and in the strict "
        "form `review skip`.",
        why="That is for a person to decide.",
        instead="Say what you need, and why. A person may do it, or give you a token: "
        "gitgates approve.",
    ),
    Rule(
        name="hooks_folder",
        answer="deny",
        meaning="Changing git's hooks folder.",
        why="It changes git hooks.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="agent_settings",
        answer="deny",
        meaning="Changing the agent's settings, which contain its hooks.",
        why="These settings contain the hooks of this session.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="gate_settings",
        answer="ask",
        meaning="Changing `[tool.gitgates]`, `gitgates.toml`, `gitgates.local.toml`, files "
        "of members and extended files, `.gitgates-baseline.json` or `.pre-commit-config.yaml`.",
        why="It changes the gate configuration.",
        instead="Say what should change, and why.",
    ),
    Rule(
        name="state_folder",
        answer="deny",
        meaning="Changing the state of gitgates in the git folder.",
        why="It is where gitgates keeps its state.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="git_folder",
        answer="deny",
        meaning="Moving or removing `.git`, changing `.git/config` other than with git, "
        "or setting `core.worktree` or `core.bare`.",
        why="Without it, nothing can be checked.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="worktree",
        answer="ask",
        meaning="`git worktree remove` and `git worktree move` for the session's own worktree.",
        why="The session's hooks end with it.",
        instead="Leave it, and say that it is no longer needed.",
    ),
    Rule(
        name="git_exclude",
        answer="ask",
        meaning="Changing `.git/info/exclude`, or setting `core.excludesFile`.",
        why="Gates do not see what git ignores.",
        instead="Use .gitignore, which is visible to everybody.",
    ),
    Rule(
        name="signers",
        answer="deny",
        meaning="Setting `gpg.ssh.allowedSignersFile`, `gpg.ssh.program` or "
        "`gpg.ssh.revocationFile`, which decide whose signed proofs count, or the remote-tracking "
        "refs, `refs/remotes/…`.",
        why="It changes whose proofs are believed.",
        instead=_BY_A_PERSON,
    ),
    Rule(
        name="hidden_files",
        answer="deny",
        meaning="`git update-index` with `--skip-worktree` or `--assume-unchanged`.",
        why="Gates do not see files that git is told to ignore.",
        instead="Leave the file visible to git.",
    ),
    Rule(
        name="nested_agent",
        answer="ask",
        meaning="Starting an agent that does not ask for permission.",
        why="That agent runs without asking for permission.",
        instead="Do it here.",
    ),
    Rule(
        name="unreadable",
        answer="ask",
        meaning="A command that cannot be parsed, or a missing parser, if a rule may apply.",
        why="It may do what the guard refuses.",
        instead="Write it plainly, as several commands if necessary.",
    ),
)
