"""The keys of the tables of settings that are one record each, such as `[tool.gitgates.review]`."""

from __future__ import annotations

from gitgates.config import advice_values as a
from gitgates.config import values as v
from gitgates.config.keys import Key
from gitgates.core.record import Record

_BESIDE = "They are laid over the built-in ones: a pattern with `!` in front takes one out."

REVIEW_KEYS: tuple[Key, ...] = (
    Key("mode", v.one_of("remind", "require", "off"), '"remind"', weaker=("off", "remind")).means(
        "`remind`: an agent that has changed much is kept from stopping until there is evidence "
        "of a review, or it says why none is needed. `require`: until an independent reviewer "
        "says COMPLETE of whatever has changed. `off`: never, unless a prompt asks for it."
    ),
    Key("required", v.FLAG, "false", weaker="off").means(
        "Neither `SKIP`, `GITGATES_SKIP` nor `gitgates.local.toml` can take the gate away or "
        "change these keys."
    ),
    Key("prefix", v.PREFIX, '"#review"', weaker="any").means(
        "What a prompt begins with to ask for the strict form, whatever the mode; with `:stop` "
        "behind it, a prompt ends that. Empty: no prompt can."
    ),
    Key("min_lines", v.AMOUNT, "40", weaker="greater").means(
        "From how many weighted lines a change is significant."
    ),
    Key("min_files", v.AMOUNT, "5", weaker="greater").means(
        "From how many weighted files a change is significant."
    ),
    Key(
        "weights", v.WEIGHTS, "{ code = 1, tests = 0.5, documentation = 0.1 }", weaker="each"
    ).means("How much a line, or a file, of each kind counts."),
    Key("tests", v.PATTERNS, "[]", weaker="more").means(f"Patterns of tests. {_BESIDE}"),
    Key("documentation", v.PATTERNS, "[]", weaker="more").means(
        f"Patterns of documentation, and of data that nobody reads line by line. {_BESIDE}"
    ),
    Key("generated", v.PATTERNS, "[]", weaker="more").means(
        "Patterns of files that nobody writes by hand: generated, vendored, lock files. They do "
        f"not count. {_BESIDE}"
    ),
    Key("critical", v.PATTERNS, "[]", weaker="fewer").means(
        "Patterns of files in which every change is significant."
    ),
    Key("ignore", v.PATTERNS, "[]", weaker="more").means("Patterns of files that never count."),
    Key("skills", v.NAMES, '["code-review", "review", "security-review"]', weaker="more").means(
        "Skills and typed commands that are a review, by name. A bare name means a plugin's of "
        "that name, too."
    ),
    Key("agents", v.NAMES, '["code-reviewer", "reviewer"]', weaker="more").means(
        "Sub-agents whose end is a review, by type. A bare name means a plugin's, too."
    ),
    Key("reviewer", v.AGENT_NAME, '"reviewer"', weaker="any").means(
        "The type of the sub-agent whose decision counts in the strict form. It is held read-only "
        "there. A bare name means a plugin's, too."
    ),
    Key("reviewer_model", v.AGENT_NAME, '"opus"', weaker="any").means(
        "The model that `gitgates install-hooks --agent claude` writes into that sub-agent."
    ),
    Key(
        "reviewer_commands",
        v.NAMES,
        '["git diff", "git log", "git show", "gitgates review", "gitgates journal"]',
        weaker="more",
    ).means("How the shell commands begin that the reviewer may run."),
    Key("second_opinions", v.NAMES, "[]", weaker="fewer").means(
        "Commands that `gitgates review opinions` asks, with the request and the change on their "
        "standard input, such as `codex exec -`."
    ),
    Key("opinion_timeout", v.DURATION, "600", weaker="sharply").means(
        "The most that one of them may take."
    ),
)

# The clients of hosts/headless.py, which cannot be imported here; a test compares them.
HEADLESS_AGENTS = (
    *("claude", "codex", "gemini", "copilot", "qwen"),
    *("opencode", "kilo", "kimi", "vibe", "hermes", "openhands"),
)
HEADLESS_KEYS: tuple[Key, ...] = (
    Key("agent", v.one_of(*HEADLESS_AGENTS), '"claude"').means(
        "The agent that `gitgates headless` starts."
    ),
    Key("agent_args", v.NAMES, "[]", weaker="any").means(
        "Further arguments of its client, such as permissions: nobody can answer a prompt."
    ),
    Key("max_files", v.COUNT, "0", weaker="greater").means(
        "The most files that a run may change. 0: any number."
    ),
    Key("max_lines", v.COUNT, "0", weaker="greater").means(
        "The most lines that a run may add and remove. 0: any number."
    ),
    Key("max_tokens", v.COUNT, "0", weaker="greater").means(
        "The most tokens that a run may use, where the client reports them. 0: any number."
    ),
    Key("max_cost", v.AMOUNT, "0", weaker="greater").means(
        "The most that a run may cost, in US dollars, where the client tells it. When that is "
        "reached, what was done is checked, and no further turn begins. 0: any amount."
    ),
    Key("client_retries", v.COUNT, "6").means(
        "How often a turn is repeated whose client failed because the model's service was busy or "
        "out of reach (429, 5xx, 529, network). After that, and at once for 0, it counts as failed."
    ),
    Key("retry_wait", v.DURATION, '"10s"').means(
        "The wait before the first such repetition. It doubles each time, up to 5 minutes, and is "
        "part of the time of the run."
    ),
    Key("allow", v.PATTERNS, weaker="any").means(
        "Patterns of the only files that a run may change. Missing: every file."
    ),
    Key("deny", v.PATTERNS, "[]", weaker="fewer").means(
        "Patterns of files that a run must not change; a second attempt that does ends it."
    ),
)

INTENTS_KEYS: tuple[Key, ...] = (
    Key("file", v.INTENTS_FILE, '".orchestration/active_intents.yaml"', weaker="any").means(
        "The file with the intents, relative to the root: YAML, or TOML by its extension."
    ),
    Key("required", v.FLAG, "false", weaker="off").means(
        "An agent changes nothing before it has selected an intent. `gitgates.local.toml` cannot "
        "change these keys then."
    ),
    Key("ask", v.PATTERNS, "[]", weaker="fewer").means(
        "Patterns of files that an agent changes only after a person has allowed it, whatever the "
        "scope says."
    ),
    Key("ttl", v.DURATION, '"30m"').means(
        "How long an intent stays with an agent of which nothing is heard. Then others may select "
        "it."
    ),
    Key("context", v.SIZE, '"8 KiB"').means(
        "The most that an agent is told of its intent, in characters. Acceptance criteria are kept "
        "first, then constraints; less than 512 B counts as that."
    ),
)

TRACE_KEYS: tuple[Key, ...] = (
    Key("mode", v.one_of("auto", "on", "off"), '"auto"', weaker=("off", "auto")).means(
        "Whether each file that an agent writes is recorded in the trace: which agent, with which "
        "intent, wrote which lines. `auto`: where `[tool.gitgates.intents]` is configured."
    ),
)

ADVICE_KEYS: tuple[Key, ...] = (
    Key("id", a.ADVICE_ID).means("Its name, once in all files. Missing: made of the title."),
    Key("title", a.TITLE).means("What it says, in one line."),
    Key("description", v.TEXT, '""').means("More of it, for whoever reads it."),
    Key(
        "status",
        v.one_of("open", "pinned", "closed", "tombstone"),
        '"open"',
        weaker=("tombstone", "closed"),
    ).means("What is `closed`, or a `tombstone`, is neither shown to agents nor run."),
    Key("priority", a.PRIORITY, "2").means("From 0, the highest, to 4."),
    Key("created_at", a.TIME).means(
        "When it was written, such as `2026-01-31T12:00:00Z`: of the same priority, the oldest "
        "comes first."
    ),
    Key("rig", a.TARGET, weaker="any").means("The only rig that it is for. Missing: any."),
    Key("role", a.TARGET, weaker="any").means("The only role that it is for. Missing: any."),
    Key("agent", a.TARGET, weaker="any").means("The only agent that it is for. Missing: any."),
    Key("hook_command", a.HOOK_COMMAND, weaker="any").means(
        "A shell command of at most 1,000 characters, run at the trigger. Missing: it is guidance, "
        "which agents are shown."
    ),
    Key(
        "hook_trigger",
        v.one_of("session-end", "before-commit", "before-push", "before-handoff"),
        weaker="any",
    ).means("When the command runs."),
    Key("hook_timeout", a.HOOK_TIMEOUT, "30", weaker="sharply").means(
        "The most that it may take, from 1 to 300 seconds; 0: 30 seconds."
    ),
    Key(
        "hook_on_failure", v.one_of("block", "warn", "ignore"), '"warn"', weaker=("ignore", "warn")
    ).means(
        "`block`: the action does not take place. `warn`: it is told. `ignore`: it is recorded."
    ),
)


_ANSWER = v.one_of("deny", "ask", "warn", "off")


def _rule(name: str, default: str, meaning: str) -> Key:
    return Key(name, _ANSWER, f'"{default}"', weaker=("off", "warn", "ask")).means(meaning)


GUARD_KEYS: tuple[Key, ...] = (
    Key("enabled", v.FLAG, "true", weaker="off").means(
        "Whether the guard looks at an agent's commands and edits at all."
    ),
    _rule("no_verify", "deny", "`git commit --no-verify`, `-n`, and the same of other commands."),
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
        "`GITGATES_AGENT`, which say whose advice is run.",
    ),
    _rule("uninstall", "deny", "`gitgates uninstall-hooks`, `pre-commit uninstall` and the like."),
    _rule(
        "person_verbs",
        "deny",
        "Commands of gitgates that are a person's, without a token: `approve`, "
        "`intent approve-scope`, `trace prune`, and in the strict form `review skip`.",
    ),
    _rule("hooks_folder", "deny", "Changing the folder of git's hooks."),
    _rule("agent_settings", "deny", "Changing the agent's settings, which its hooks are in."),
    _rule(
        "gate_settings",
        "ask",
        "Changing `[tool.gitgates]`, `gitgates.toml`, `gitgates.local.toml` or "
        "`.pre-commit-config.yaml`.",
    ),
    _rule("intents_file", "ask", "Changing the file with the intents."),
    _rule("state_folder", "deny", "Changing what gitgates keeps in the git folder."),
    _rule(
        "git_folder",
        "deny",
        "Moving or removing `.git`, changing `.git/config` by other means than git, or setting "
        "`core.worktree` or `core.bare`.",
    ),
    _rule("git_exclude", "ask", "Changing `.git/info/exclude`, or setting `core.excludesFile`."),
    _rule(
        "hidden_files", "deny", "`git update-index` with `--skip-worktree` or `--assume-unchanged`."
    ),
    _rule("reviewer_files", "ask", "Changing an agent, skill or command that reviews."),
    _rule("nested_agent", "ask", "Starting an agent that asks nobody for permission."),
    _rule(
        "unreadable",
        "ask",
        "A command that cannot be parsed, or no parser, where a rule may be about it.",
    ),
)


class Section(Record):
    """One such table. Its record is in `SECTIONS` of `gitgates/core/types.py`."""

    name: str
    keys: tuple[Key, ...]
    meaning: str
    example: str  # what to write where there is not a table


SECTION_KEYS: tuple[Section, ...] = (
    Section(
        name="review",
        keys=REVIEW_KEYS,
        meaning="What the built-in gate `review` asks for, where a hook lists it. Patterns are "
        "those of `files` of a gate.",
        example='mode = "remind", and list `review` in a hook.',
    ),
    Section(
        name="headless",
        keys=HEADLESS_KEYS,
        meaning="What `gitgates headless` starts, and what a run of it may change.",
        example='agent = "claude".',
    ),
    Section(
        name="intents",
        keys=INTENTS_KEYS,
        meaning="What agents may work on, and where. Without this table, intents are off.",
        example="required = true.",
    ),
    Section(
        name="trace",
        keys=TRACE_KEYS,
        meaning="Whether what agents write is recorded, for `gitgates trace`.",
        example='mode = "on".',
    ),
    Section(
        name="guard",
        keys=GUARD_KEYS,
        meaning="What is answered where an agent is about to bypass the gates. `deny`: the tool "
        "call is refused. `ask`: the person is asked; where nobody can answer, it is refused. "
        "`warn`: the agent is told. `off`: nothing. [More](../how-to/guard.md).",
        example='no_verify = "ask".',
    ),
)

# An array of such tables, each with an id.
ADVICE = Section(
    name="advice",
    keys=ADVICE_KEYS,
    meaning="`[[tool.gitgates.advice]]`, once for each: what agents are to know, and commands that "
    "run at a moment of their work. `gitgates advice` writes it.",
    example='title = "Run the tests".',
)
