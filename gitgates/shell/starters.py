"""Programs that start a command given in their arguments: `env`, `npx`, `docker exec`.

One row for each way to find that command. The guard does not see what any other program starts.
"""

from __future__ import annotations

from itertools import pairwise

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Starter(Record):
    """How programs find the command that they start."""

    names: str  # the programs'
    verbs: tuple[str, ...] = ()  # one of them must be the first word after the options
    command: str = "rest"  # a key of `COMMANDS`
    before: int = 0  # words before the command
    valued: str = ""  # letters of options that take a value
    texts: tuple[str, ...] = ()  # options whose value is a shell command line
    folders: tuple[str, ...] = ()  # options whose value is the command's folder
    assigns: bool = False  # `NAME=value` before the command is its environment


class Started(Record):
    """A command that another one starts."""

    words: tuple[str, ...] = ()
    text: str = ""  # instead of words: a shell command line
    env: tuple[tuple[str, str], ...] = ()
    folder: str = ""  # empty: that of the program


# How to find a command that is in no option → the same, for the documentation.
COMMANDS = {
    "rest": "the words after the options",
    "dashes": "the words after `--`",
    "joined": "the words after the options, as a shell command line",
    "none": "",
}
STARTERS = (
    Starter(names="builtin chronic command coproc fakeroot gtime nohup setsid time unbuffer"),
    Starter(names="busybox toybox winpty"),
    Starter(names="exec", valued="a"),
    Starter(
        names="env",
        valued="uCP",
        texts=("-S", "--split-string"),
        folders=("-C", "--chdir"),
        assigns=True,
    ),
    Starter(names="doas", valued="uC", assigns=True),
    Starter(names="sudo", valued="ugpChrtTUDR", folders=("-D", "--chdir"), assigns=True),
    Starter(names="su runuser", command="none", texts=("-c", "--command", "--session-command")),
    Starter(names="script", command="none", texts=("-c", "--command")),
    Starter(names="flock", valued="wE", before=1, texts=("-c", "--command")),
    Starter(names="ionice", valued="cnp"),
    Starter(names="nice", valued="n"),
    Starter(names="stdbuf", valued="ioe"),
    Starter(names="strace ltrace", valued="aeoOpPsSuE"),
    Starter(names="taskset chrt", before=1),
    Starter(names="timeout gtimeout", valued="ks", before=1),
    Starter(names="systemd-run", valued="puEGMt"),
    Starter(
        names="tmux",
        verbs=(
            *("new", "new-session", "neww", "new-window", "splitw", "split-window"),
            *("respawnp", "respawn-pane", "run", "run-shell", "send", "send-keys"),
        ),
        valued="stncxyFelN",
        command="joined",
        folders=("-c",),
    ),
    Starter(names="screen", valued="SctTehp"),
    Starter(names="systemd-inhibit dbus-run-session caffeinate"),
    Starter(names="xvfb-run", valued="enfps"),
    Starter(names="watch", valued="n", command="joined"),
    Starter(names="entr", command="rest", texts=("-s",)),
    Starter(names="watchexec nodemon", valued="wefi", texts=("-x", "--exec")),
    Starter(names="xargs", valued="adEIJLnPs"),
    # environment managers
    Starter(names="hatch pdm pipenv poetry rye", verbs=("run",), valued="Cep"),
    Starter(names="uv", verbs=("run", "tool run"), valued="pmC", folders=("--directory",)),
    Starter(names="pipx", verbs=("run",)),
    Starter(names="uvx", valued="p"),
    Starter(names="conda mamba micromamba", verbs=("run",), valued="np"),
    Starter(names="pixi devbox", verbs=("run",), valued="e"),
    Starter(names="tox", verbs=("exec",), command="dashes"),
    Starter(names="npx bunx pnpx", valued="p", texts=("-c", "--call")),
    Starter(names="npm", verbs=("exec", "x"), valued="pw", texts=("-c", "--call")),
    Starter(names="pnpm", verbs=("exec", "dlx"), valued="CF", folders=("-C", "--dir")),
    Starter(names="yarn", verbs=("exec", "dlx", "run"), valued="p"),
    Starter(names="bun", verbs=("x",)),
    Starter(names="corepack"),
    Starter(names="lerna nx", verbs=("exec",)),
    Starter(names="cross-env", assigns=True),
    Starter(names="cross-env-shell", command="joined", assigns=True),
    Starter(names="dotenv env-cmd", valued="efv"),
    Starter(names="dotenvx op doppler infisical", verbs=("run",), valued="f"),
    Starter(names="aws-vault", verbs=("exec",), before=1),
    Starter(names="direnv", verbs=("exec",), before=1),
    Starter(names="mise rtx", verbs=("exec", "x"), command="dashes", texts=("-c", "--command")),
    Starter(names="asdf rbenv pyenv nodenv bundle", verbs=("exec",)),
    Starter(names="nvm", verbs=("exec",), before=1),
    Starter(names="fnm", verbs=("exec",)),
    Starter(names="volta", verbs=("run",)),
    Starter(names="nix-shell", command="none", texts=("--run", "--command")),
    Starter(names="guix", verbs=("shell", "environment"), command="dashes"),
    Starter(names="git", verbs=("bisect run",), valued="Cc", folders=("-C",)),
    Starter(
        names="git", verbs=("submodule foreach",), valued="Cc", command="joined", folders=("-C",)
    ),
    Starter(
        names="git",
        verbs=("rebase",),
        valued="Cc",
        command="none",
        texts=("-x", "--exec"),
        folders=("-C",),
    ),
)
_ROWS: dict[str, list[Starter]] = {}
for _row in STARTERS:
    for _name in _row.names.split():
        _ROWS.setdefault(_name, []).append(_row)
_SPLITTING = ("-S", "--split-string")  # for env: all later words belong to the command, too
HOMES = ("HOME", "XDG_CONFIG_HOME")  # where git finds a person's own configuration
# Long options that take a value, for all programs.
_LONG_WITH_VALUE = (
    *("--signal", "--kill-after", "--unset", "--chdir", "--user", "--group", "--package", "--env"),
    *("--python", "--with", "--from", "--extra", "--name", "--prefix", "--directory", "--project"),
    *("--filter", "--config", "--env-file", "--interval", "--cwd", "--file", "--workspace"),
    *("--delimiter", "--max-args", "--max-procs", "--max-chars", "--max-lines", "--arg-file"),
    *("--spec", "--dir", "--scope", "--manifest-path", "--environment", "--property"),
)


def started(program: str, words: list[str]) -> Iterator[Started]:
    """Yield the commands that a program starts, by its name and the words after it."""
    for row in _ROWS.get(program, ()):
        rest = _after_verb(row, words)
        if rest is not None:
            options = words[: len(words) - len(_after_options(row, rest)[1])]
            folder = _folder(row, options)
            yield from (command._replace(folder=folder) for command in _started_by(row, rest))


def _folder(row: Starter, words: list[str]) -> str:
    """Return the folder in which the starting program runs the command, by its options."""
    for word, after in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        for option in row.folders:
            if name == option:
                return value if equals else after
            if word.startswith(option) and not option.startswith("--"):
                return word.removeprefix(option)
    return ""


def _after_verb(row: Starter, words: list[str]) -> list[str] | None:
    """Return the words after one of the row's verbs; None if there is none of them."""
    if not row.verbs:
        return words
    rest = _after_options(row, words)[1]
    for verb in map(str.split, row.verbs):
        if rest[: len(verb)] == verb:
            return rest[len(verb) :]
    return None


def _started_by(row: Starter, words: list[str]) -> Iterator[Started]:
    env, rest = _after_options(row, words)
    begun = Started(env=env)
    for at in _option_places(row, words, len(words) - len(rest)):
        name, equals, value = words[at].partition("=")
        if name in row.texts and name in _SPLITTING:
            yield begun._replace(text=" ".join([value, *words[at + 1 :]]))
        elif _has_text(row, words[at]):
            is_inside = equals and name in row.texts
            yield begun._replace(text=value if is_inside else " ".join(words[at + 1 : at + 2]))
        else:
            continue
        rest = []
    if row.command == "dashes":
        rest = words[words.index("--") + 1 :] if rest and "--" in words else []
    elif row.before:
        rest = rest[row.before :]
        rest = rest[1:] if rest[:1] == ["--"] else rest
    if rest:
        yield from _after_all_options(row, begun, rest)


def _after_all_options(row: Starter, begun: Started, rest: list[str]) -> Iterator[Started]:
    """Yield the commands after a program's options."""
    match row.command:
        case "rest" | "dashes":
            yield begun._replace(words=tuple(rest))
        case "joined":
            yield begun._replace(text=" ".join(rest))


def _option_places(row: Starter, words: list[str], until: int) -> Iterator[int]:
    """Yield the indices at which the program's own options may be; most are before `until`."""
    if row.command in ("none", "dashes"):
        until = words.index("--") if "--" in words else len(words)
    yield from range(until)
    if row.before and words[until + row.before :][:1]:  # `flock FILE -c`
        yield until + row.before


def _has_text(row: Starter, word: str) -> bool:
    """Return whether a word is an option whose value is a shell command line; `-qc` has `-c`."""
    if word.partition("=")[0] in row.texts:
        return True
    last = f"-{word[-1:]}"
    return len(word) > len(last) and word[0] == "-" != word[1] and last in row.texts


def _after_options(row: Starter, words: list[str]) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Return the variables set before a command, and the words from the command on."""
    env: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest[0]
        name, equals, value = word.partition("=")
        if word == "--":
            return tuple(env), rest[1:]
        if row.names == "env" and word.startswith("-"):
            env += [(unset, "") for unset in _unset_homes(word, *rest[1:2])]
        if word == "-" and row.names == "env":
            rest = rest[1:]
            continue
        if word.startswith("-") and word != "-":
            at = next((at for at, letter in enumerate(word) if letter in row.valued), 0)
            is_last = 0 < at == len(word) - 1 and not word.startswith("--")
            rest = rest[1 + (word in _LONG_WITH_VALUE or is_last) :]
        elif equals and name.isidentifier() and row.assigns:
            env.append((name, value))
            rest = rest[1:]
        else:
            break
    return tuple(env), rest


def _unset_homes(option: str, following: str = "") -> list[str]:
    """Return which of `HOMES` an option of `env` unsets."""
    if option.startswith("--"):
        name, _, value = option.partition("=")
        clears, is_unset = name.startswith("--i"), name.startswith("--u")
    else:
        letters, letter, value = option[1:].partition("u")
        clears, is_unset = option == "-" or "i" in letters, bool(letter)
    unset = (value or following) if is_unset else ""
    return [home for home in HOMES if clears or home == unset]
