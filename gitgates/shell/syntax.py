"""Parse a shell command line into the simple commands that it would run, with a bash grammar.

It follows quotes, variables that the line itself sets, `cd`, here-documents, substitutions,
pipelines, and programs that start others (`env`, `xargs`, `bash -c`). What only a running shell
would know is `UNKNOWN`. It runs nothing. Both branches of a condition count, as do functions'
bodies.
"""

from __future__ import annotations

import os
import re
import time
from functools import cache
from itertools import pairwise, takewhile
from shlex import join

from gitgates.core.record import Record
from gitgates.proc.alarm import hold_signals, release_signals
from gitgates.shell.options import spared_by_find
from gitgates.shell.repositories import git_call, repositories_made
from gitgates.shell.starters import HOMES, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from tree_sitter import Node, Parser

UNKNOWN = "\ue000"  # in a word; means nothing to any shell
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_EXEC = ("-exec", "-execdir", "-ok", "-okdir")  # in find
_PLACEHOLDER = "{}"  # for an argument, in the commands of find and xargs
_NO_SHELL = "it cannot be parsed as shell commands"
NO_TIME = "it takes too long to parse"
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_WORDS = ("word", "number", "string", "raw_string", "concatenation", "simple_expansion")
_SUBSHELLS = ("subshell", "command_substitution", "process_substitution")  # a `cd` ends with them
_PWD, _OLDPWD = "PWD", "OLDPWD"  # variables that `cd` sets
_DEEPEST = 5  # scripts in scripts
# For a line and all scripts in it. For some characters, the grammar takes quadratic time.
LONGEST_S = 1.0
_MOST_PIPES = 3000  # while it parses these, the grammar cannot be stopped
_MOST_TURNS = 20  # per loop
_MOST_NODES = 20_000  # which limits nested loops
_LONGEST_VALUE = 10_000  # characters of a variable
_CHUNK_BYTES = 1 << 10
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::?([-?=]).*)?\}?", re.DOTALL)
# Valid shell that the grammar rejects → an equivalent that it accepts.
_FOR_GRAMMAR = (
    (re.compile(r"\$\(\("), "$( ("),  # a subshell; the grammar accepts arithmetic
    (re.compile(r"([})]|\b(?:done|esac|fi))(?=\s+(?:do|done|elif|else|esac|fi|then)\b)"), r"\1;"),
    (re.compile(r"(\$\{\w+)/(?:[^{}'\"`$\\;&|()]|\$'(?:\\\w|[\w ,.:-])*')*\}"), r"\1//x}"),
)


class SimpleCommand(Record):
    """One command: its words without quotes, its environment, its folder, and its input."""

    words: tuple[str, ...] = ()
    env: Mapping[str, str] = {}  # what the line adds to its environment
    writes: tuple[str, ...] = ()  # files to which its output is redirected
    cwd: str = ""  # relative to the line's own folder, or absolute
    fallback: str = ""  # its folder if an earlier `cd` failed; empty: none can have failed
    stdin: str = UNKNOWN
    files: tuple[str, ...] = ()  # the texts of its arguments `<(…)`
    replaces: tuple[str, ...] = ()  # those of `writes` that are overwritten, not appended to
    fed: tuple[str, ...] = ()  # words from a pipe or find that may become its arguments
    is_fed: bool = False  # xargs or find makes them its arguments; else only its input has them


_BARE = SimpleCommand()


class CommandLine(Record):
    """All commands in a line, in order, including those in nested scripts."""

    commands: tuple[SimpleCommand, ...] = ()
    trouble: str = ""  # why some may be missing


class SyntaxTree(Record):
    """A command line's syntax tree."""

    root: Node = None  # type: ignore[assignment]
    source: bytes = b""

    def text_of(self, node: Node) -> str:
        """Return a node's text.

        `Node.text` would call `read` in `parse`, and crash if that is interrupted.
        """
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """Return the text between two byte offsets."""
        return self.source[start:end].decode("utf-8", "replace")


def parse(text: str, longest_s: float = LONGEST_S) -> SyntaxTree | None:
    """Return a command line's syntax tree; None if there is no parser, or it takes too long."""
    parser, until = _parser(), time.monotonic() + longest_s
    if parser is None or text.count("|") > _MOST_PIPES:
        return None
    source = text.encode("utf-8", "replace")

    def read(at: int, _point: object) -> bytes:
        return source[at : at + _CHUNK_BYTES]

    old_mask = hold_signals()
    try:  # the parser calls progress_callback only if it also reads its input by a function
        tree = parser.parse(
            read, progress_callback=lambda _at, _has_error: time.monotonic() > until
        )
    except ValueError:  # out of time
        parser.reset()
        return None
    finally:
        release_signals(old_mask)
    return SyntaxTree(root=tree.root_node, source=source)


@cache
def _parser() -> Parser | None:
    try:
        core, grammar = _extension("tree_sitter"), _extension("tree_sitter_bash")
        parser: Parser = core.Parser(core.Language(grammar.language()))
    except Exception:  # noqa: BLE001 - no error in an installed package may stop us
        return None
    return parser


def _extension(package: str) -> Any:  # noqa: ANN401 - a module
    """Load a package's extension without the package, which would take 25 ms."""
    from importlib.machinery import PathFinder

    parent = PathFinder.find_spec(package)
    spec = parent and PathFinder.find_spec(f"{package}._binding", parent.submodule_search_locations)
    if not spec or not spec.loader:
        raise ImportError(package)
    module = spec.loader.create_module(spec)
    if module is None:
        raise ImportError(package)
    spec.loader.exec_module(module)
    return module


def read_command_line(
    text: str,
    env: Mapping[str, str] = {},
    output_of: Callable[[tuple[str, ...], str], str] = lambda _words, _cwd: UNKNOWN,
    *,
    is_folder: Callable[[str], bool] = lambda _path: True,
    alias_of: Callable[[str], str] = lambda _verb: "",
    longest_s: float = LONGEST_S,
) -> CommandLine:
    """Return a line's commands.

    `env`: the shell's variables; `output_of`: the known output of a program, by its words and its
    folder; `is_folder`: whether a path, as written in the line, is a folder; `alias_of`: what a git
    verb expands to, by git's configuration.
    """
    reader = _Shell(
        env, output_of, is_folder, alias_of=alias_of, until=time.monotonic() + longest_s
    )
    try:
        reader.script(text)
    except RecursionError:
        reader.trouble = "it is too long, or nested too deeply"
    except TimeoutError:
        reader.trouble = NO_TIME
    except (IndexError, ValueError):  # the tree of a text that is not shell lacks parts
        reader.trouble = _NO_SHELL
    return CommandLine(commands=tuple(reader.commands), trouble=reader.trouble)


class Folder(Record):
    """A shell's current folder, and what `cd` and `popd` may return to."""

    cwd: str
    last: str  # for `cd -`
    fallback: str
    stack: tuple[str, ...]  # from `pushd`


class _Shell:
    """The shell's state while a line is read."""

    def __init__(
        self,
        env: Mapping[str, str],
        output_of: Callable[[tuple[str, ...], str], str],
        is_folder: Callable[[str], bool],
        *,
        alias_of: Callable[[str], str],
        until: float,
    ) -> None:
        self.commands: list[SimpleCommand] = []
        self.trouble = ""
        self._variables = dict(env)
        self._root = self._variables.setdefault(_PWD, UNKNOWN)
        self._exported: dict[str, str] = {}
        self._cwd = ""
        self._last = UNKNOWN
        self._fallback = ""
        self._stack: list[str] = []
        self._made_folders: list[str] = []  # by earlier commands
        self._ends_at_failure = False
        self._files: list[str] = []
        self._is_folder = is_folder
        self._alias_of = alias_of
        self._tree = SyntaxTree()
        self._depth = 0
        self._nodes = 0
        self._until = until
        self._output_of = output_of

    def script(self, text: str, context: SimpleCommand = _BARE) -> None:
        """Read a script; `context`: its input."""
        # The grammar splits a word at a line continuation.
        left_s = self._until - time.monotonic()
        text = re.sub(r"(?<=[^\s\\])\\\n", "", text)
        tree = parse(text, left_s)
        if tree and tree.root.has_error:
            tree = self._parsed_again(text) or tree
        if tree is None:
            self.trouble = NO_TIME if _parser() else "the parser for commands cannot be loaded"
        elif self._depth >= _DEEPEST:
            self.trouble = "it has too many nested scripts"
        else:
            if tree.root.has_error:
                self.trouble = _NO_SHELL
            outer, self._tree = self._tree, tree
            self._depth += 1
            self._visit(tree.root, context)
            self._depth -= 1
            self._tree = outer

    def _parsed_again(self, text: str) -> SyntaxTree | None:
        """Return the tree of valid shell that the grammar rejected; None if it is invalid."""
        plainer = text
        for pattern, replacement in _FOR_GRAMMAR:
            plainer = pattern.sub(replacement, plainer)
        left_s = self._until - time.monotonic()
        tree = parse(plainer, left_s) if plainer != text else None
        return None if tree is None or tree.root.has_error else tree

    def _visit(self, node: Node, context: SimpleCommand) -> None:
        """Read a node; `context` has the redirections and the pipe around it."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise RecursionError
        self._watch_clock()
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node, context)
            case "variable_assignment":
                name, value = self._assignment(node)
                self._variables[name] = value
            case "redirected_statement":
                self._redirected(node, context)
            case "pipeline":
                self._pipeline(node, context)
            case "for_statement":
                self._loop(node, context)
            case "list":
                self._list(node, context)
            case kind if kind in _SUBSHELLS:
                folder = self._folder()
                self._visit_all(node.named_children, context)
                self._restore_folder(folder)
            case _:
                self._visit_children(node, context)

    def _visit_children(self, node: Node, context: SimpleCommand) -> None:
        folder = self._folder()
        for child in node.children:
            if child.is_named:
                folder = self._folder()
                self._visit(child, context)
            elif child.type == "&":  # the command before it runs in a subshell
                self._restore_folder(folder)

    def _watch_clock(self) -> None:
        if time.monotonic() > self._until:
            raise TimeoutError

    def _visit_all(self, nodes: Iterable[Node], context: SimpleCommand) -> None:
        for node in nodes:
            self._visit(node, context)

    def _list(
        self, node: Node, context: SimpleCommand, of_last: SimpleCommand | None = None
    ) -> None:
        """Read commands joined by `&&` or `||`. After `cd x &&`, that `cd` has not failed.

        `of_last`: the last command's context.
        """
        before = self._fallback
        joint = ""
        for child in node.children:
            if not child.is_named:
                joint = child.type
                continue
            failed = self._fallback
            self._fallback = before if joint == "&&" else failed
            around = of_last if child.end_byte == node.end_byte else None
            self._visit(child, around or context)
            if joint == "||" and self._tree.text_of(child).split()[:1] in (["exit"], ["return"]):
                failed = before
            self._fallback = self._fallback or failed

    def _command(self, node: Node, context: SimpleCommand) -> None:
        words: list[str] = []
        self._files = []
        env = dict(self._exported)
        is_plain = node.type == "command"
        for child in node.children:
            if child.type in _REDIRECTS:
                context = self._redirect(child, context)
            elif child.type == "variable_assignment":
                name, value = self._assignment(child)
                env |= {name: value} if is_plain else {}
                words += [] if is_plain else [f"{name}={value}"]
            elif child.type != "$":  # in $"text", the grammar takes it for a separate word
                words += self._words(child)
        words += context.words
        self._add(self._with_folder(context)._replace(words=tuple(words), env=env))

    def _with_folder(self, command: SimpleCommand) -> SimpleCommand:
        """Return a command with its folder."""
        return command._replace(cwd=self._cwd, fallback=self._fallback, files=tuple(self._files))

    def _assignment(self, node: Node) -> tuple[str, str]:
        name, _, *values = node.children
        return self._tree.text_of(name), self._value(values[0])[:_LONGEST_VALUE] if values else ""

    def _redirected(self, node: Node, context: SimpleCommand) -> None:
        redirects = [child for child in node.named_children if child.type in _REDIRECTS]
        inner = context
        for child in redirects:
            inner = self._redirect(child, inner)
        at = len(self.commands)
        for body in node.named_children:
            if body.type == "list":  # of `a && b > x`, of which only the last is redirected
                self._list(body, context, inner)
            elif body.type not in _REDIRECTS:
                self._visit(body, inner)
        if len(self.commands) == at:
            self.commands.append(self._with_folder(inner))
        last = self.commands[-1]
        # What follows on the line where a here-document begins is a part of that for the grammar.
        for child in redirects:
            for rest in child.named_children if child.type == "heredoc_redirect" else ():
                if rest.type == "pipeline":
                    self._pipeline(rest, context, last)
                elif rest.type in ("command", "list", "redirected_statement"):
                    self._visit(rest, context)

    def _redirect(self, node: Node, context: SimpleCommand) -> SimpleCommand:
        if node.type == "herestring_redirect":
            return context._replace(stdin=self._value(node.named_children[-1]))
        if node.type == "heredoc_redirect":
            return self._heredoc(node, context)
        goals = [child for child in node.named_children if child.type != "file_descriptor"]
        operator = next((child.type for child in node.children if not child.is_named), "<")
        if not operator.endswith("-"):  # `2>&-` has none
            goal = goals.pop(0)
            value = " ".join(self._words(goal))
            if operator == "<" and goal.type == "process_substitution":
                context = context._replace(stdin=self._files[-1])
            if not operator.startswith("<") and goal.type != "number":
                context = context._replace(writes=(*context.writes, value))
                if ">>" not in operator:
                    context = context._replace(replaces=(*context.replaces, value))
        for goal in goals:  # words of the command, for a shell
            context = context._replace(words=(*context.words, *self._words(goal)))
        return context

    def _heredoc(self, node: Node, context: SimpleCommand) -> SimpleCommand:
        for child in node.named_children:
            if child.type in _REDIRECTS:
                context = self._redirect(child, context)
            elif child.type == "heredoc_body":
                is_quoted = not self._tree.text_of(node.named_children[0]).isidentifier()
                context = context._replace(
                    stdin=self._tree.text_of(child) if is_quoted else self._value(child)
                )
            elif child.type in _WORDS:
                context = context._replace(words=(*context.words, *self._words(child)))
        return context

    def _pipeline(
        self, node: Node, context: SimpleCommand, last: SimpleCommand | None = None
    ) -> None:
        for child in node.named_children:
            before = context
            if last:
                output = self._output(last)
                words = (*last.words[1:], *(word for word in output.split() if word != UNKNOWN))
                fed = tuple(dict.fromkeys(word for word in words if not word.startswith("-")))
                before = context._replace(stdin=output, fed=fed)
            at, folder = len(self.commands), self._folder()
            self._visit(child, before)
            self._restore_folder(folder)  # each part runs in a subshell
            last = self.commands[-1] if len(self.commands) > at else None

    def _loop(self, node: Node, context: SimpleCommand) -> None:
        name, *rest = node.named_children
        values = [word for child in rest if child.type != "do_group" for word in self._words(child)]
        for value in values[:_MOST_TURNS] or [UNKNOWN]:
            self._variables[self._tree.text_of(name)] = value
            self._visit_all([child for child in rest if child.type == "do_group"], context)

    # Words

    def _words(self, node: Node) -> list[str]:
        """Return the words that a node expands to; unquoted, it may be several."""
        value = self._value(node)
        if node.type == "command_name":
            node = node.children[0]
        if node.type in ("simple_expansion", "expansion", "command_substitution"):
            return value.split()
        if node.type in ("word", "concatenation") and value.split("/")[0] == "~":
            value = self._variables.get("HOME", UNKNOWN) + value[1:]
        return [value]

    def _value(self, node: Node) -> str:
        """Return a node's text without quotes, and with known values substituted."""
        self._watch_clock()
        text, value = self._tree.text_of(node), UNKNOWN
        match node.type:
            case "raw_string":
                value = text[1:-1]
            case "ansi_c_string":
                value = text[2:-1].encode("latin-1", "replace").decode("unicode_escape", "replace")
            case "string_content":
                value = re.sub(r'\\([$`"\\\n])', _unescaped, text)
            case "simple_expansion" | "expansion" if match := _VARIABLE.fullmatch(text):
                value = self._variable(node, match)
            case "command_substitution":
                value = self._substituted(node)
            case "process_substitution":
                outer, text = self._files, self._substituted(node)
                self._files = [*outer, text]
            case "arithmetic_expansion" | "simple_expansion" | "expansion":
                self._visit_all(node.named_children, SimpleCommand())
            case '"' | "$":
                value = ""
            case _ if node.children:
                value = self._joined(node)
            case _:
                value = re.sub(r"\\(.)", _unescaped, text, flags=re.DOTALL)
        return value

    def _variable(self, node: Node, match: re.Match[str]) -> str:
        """Return a variable's value, or its default if it is not set: `${x:-y}`."""
        name, operator = match.groups()
        if not operator:
            return self._variables.get(name, UNKNOWN)
        has_default = operator in "-=" and node.named_children[1:]
        default = self._value(node.named_children[-1]) if has_default else UNKNOWN
        return self._variables.get(name, "") or default

    def _joined(self, node: Node) -> str:
        at, parts = node.start_byte, []
        for child in node.children:  # between them is white space
            parts += [self._tree.between(at, child.start_byte), self._value(child)]
            at = child.end_byte
        return "".join([*parts, self._tree.between(at, node.end_byte)])

    def _substituted(self, node: Node) -> str:
        at = len(self.commands)
        self._visit_all([node], SimpleCommand())
        inside = self.commands[at:]
        return self._output(inside[0]).rstrip("\n") if len(inside) == 1 else UNKNOWN

    def _output(self, command: SimpleCommand) -> str:
        """Return what a command prints, as far as it is known."""
        text = printed(command)
        return self._output_of(command.words, command.cwd) if text is None else text

    # Programs that start others

    def _add(self, command: SimpleCommand) -> None:
        self._watch_clock()
        command = _as_git(command)
        self.commands.append(command)
        program = os.path.basename(command.words[0]) if command.words else ""
        rest = list(command.words[1:])
        plain = [word for word in rest if not word.startswith("-")]
        unset = plain if program == "unset" else ()
        self._exported |= {home: "" for home in HOMES if home in unset}
        if program in ("cd", "pushd", "popd"):
            self._change_folder(program, [word for word in rest if word == "-" or word in plain])
        elif program == "set":
            self._ends_at_failure |= any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in rest)
        elif program in ("export", "declare", "typeset"):
            self._export(plain)
        elif program in SHELLS:
            script = _script_of(rest) or (_file_of(command, plain) if plain else command.stdin)
            is_given = command.is_fed and script == _PLACEHOLDER  # by xargs
            self._read_nested(command.stdin if is_given else script, command)
        elif program in ("source", "."):
            self._read_nested(_file_of(command, plain), command)
        elif program in ("eval", "trap", "alias"):
            scripts = {"eval": " ".join(rest), "trap": "".join(plain[:1])}
            self._read_nested(
                scripts.get(program, "\n".join(word.partition("=")[2] for word in rest)), command
            )
        elif program == "find":
            self._find(command, rest)
        elif program == "command" and not {"-v", "-V"}.isdisjoint(rest[:1]):
            return  # it only says where a program is
        elif program == "coproc" and "{" in rest[:2]:  # a group, which the grammar does not support
            self._add(command._replace(words=tuple(rest[rest.index("{") + 1 :])))
        else:
            self._made_folders += [
                os.path.join(command.cwd, path) for path in made_by(program, rest)
            ]
            self._start(command, program, rest)

    def _find(self, command: SimpleCommand, rest: list[str]) -> None:
        for words, fed in _commands_of_find(rest):
            self._add(command._replace(words=words, fed=fed, is_fed=True))

    def _start(self, command: SimpleCommand, program: str, rest: list[str]) -> None:
        """Read the commands that a program starts."""
        if program == "git":
            self._read_alias(command, rest)
        placeholder = _placeholder_of(rest) if program == "xargs" else ""
        for inner in started(program, rest):
            begun = command._replace(
                words=tuple(
                    word.replace(placeholder or _PLACEHOLDER, _PLACEHOLDER) for word in inner.words
                ),
                env={**command.env, **dict(inner.env)},
                cwd=os.path.join(command.cwd, inner.folder),
                is_fed=command.is_fed or program == "xargs",
            )
            if inner.words:
                self._add(begun)
            else:
                self._read_nested(inner.text, begun)

    def _read_alias(self, command: SimpleCommand, words: list[str]) -> None:
        """Read what a git alias expands to; git expands no alias in it."""
        call, alias_of = git_call(words), self._alias_of
        text = alias_of(call.verb) if call.verb.replace("-", "").isalnum() else ""
        if text:
            before = words[: len(words) - len(call.rest) - 1]
            shell = text[1:] if text.startswith("!") else f"git {join(before)} {text}"
            self._alias_of = lambda _verb: ""
            self._read_nested(f"{shell} {join(call.rest)}", command)
            self._alias_of = alias_of

    def _change_folder(self, program: str, goals: list[str]) -> None:
        """Change the folder as the shell does."""
        previous = self._cwd
        if program == "popd" or (program == "pushd" and not goals):
            goal = self._stack.pop() if self._stack else previous
        elif goals[:1] == ["-"]:
            goal = self._last
        else:
            goal = os.path.join(previous, *goals[:1] or [self._variables.get("HOME", "")])
            is_made = os.path.normpath(goal) in map(os.path.normpath, self._made_folders)
            if not (is_made or UNKNOWN in goal or self._ends_at_failure or self._is_folder(goal)):
                self._fallback = self._fallback or previous or "."
        if program == "pushd":
            self._stack.append(previous)
        self._last, self._cwd = previous, goal
        folders = {_OLDPWD: self._variables[_PWD], _PWD: os.path.join(self._root, goal)}
        self._variables |= folders

    def _export(self, words: list[str]) -> None:
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                self._variables[name] = value
            if name in self._variables:
                self._exported[name] = self._variables[name]

    def _read_nested(self, text: str, command: SimpleCommand) -> None:
        if UNKNOWN != text != "":
            exported = self._exported
            self._exported = {**self._exported, **command.env}
            folder = self._folder()
            fed = SimpleCommand(fed=command.fed, stdin=command.stdin) if command.is_fed else _BARE
            self.script(text, fed)
            self._restore_folder(folder)
            self._exported = exported

    def _folder(self) -> Folder:
        return Folder(self._cwd, self._last, self._fallback, tuple(self._stack))

    def _restore_folder(self, folder: Folder) -> None:
        self._cwd, self._last, self._fallback = folder.cwd, folder.last, folder.fallback
        self._stack = list(folder.stack)


def _as_git(command: SimpleCommand) -> SimpleCommand:
    """Return `git-commit`, a program in git's own folder, as `git commit`."""
    folder, program = os.path.split(command.words[0]) if command.words else ("", "")
    is_known = not folder or folder.endswith("git-core") or UNKNOWN in folder
    if not (program.startswith("git-") and is_known):
        return command
    return command._replace(words=("git", program.removeprefix("git-"), *command.words[1:]))


def _file_of(command: SimpleCommand, words: list[str]) -> str:
    """Return the script that a shell reads from a file, if the line itself contains it."""
    if words[:1] in (["/dev/stdin"], ["/dev/fd/0"]):
        return command.stdin
    return command.files[0] if command.files and UNKNOWN in words else ""


def _placeholder_of(words: list[str]) -> str:
    """Return the placeholder that an xargs option such as `-I%` sets; empty without one."""
    for word, after in pairwise([*words, ""]):
        if word.startswith("-I"):
            return word[2:] or after
        if word.startswith("--replace="):
            return word.partition("=")[2]
    return ""


def _script_of(words: list[str]) -> str:
    """Return the script given by a shell's option `-c`; empty without one."""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return next((word for word in words[at + 1 :] if not word.startswith("-")), "")
    return ""


def _commands_of_find(words: list[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the commands that find starts, and the folders of the files that each is given."""
    fed = tuple(takewhile(lambda word: word not in _EXEC, words))
    spared = spared_by_find(fed)
    fed = tuple(word for word in fed if not word.startswith("-") and word not in spared)
    while any(word in _EXEC for word in words):
        at = next(at for at, word in enumerate(words) if word in _EXEC)
        words = words[at + 1 :]
        pairs = zip(["", *words], words, strict=False)
        command = tuple(word for _, word in takewhile(lambda pair: not _ends_exec(*pair), pairs))
        yield command, fed
        words = words[len(command) :]


def _ends_exec(before: str, word: str) -> bool:
    return word == ";" or (before, word) == ("{}", "+")


def printed(command: SimpleCommand) -> str | None:
    """Return what `echo`, `printf` or `cat` prints; None for another command."""
    match command.words:
        case ("echo", "-e" | "-ne" | "-en", *rest):
            return _unescaped_text(" ".join(rest))
        case ("echo", "-n", *rest) | ("echo", *rest):
            return " ".join(rest)
        case ("printf", form, *rest) if form != "-v":
            return _unescaped_text(_formatted(form, rest))
        case ("cat",):
            return command.stdin
    return None


def _formatted(form: str, words: list[str]) -> str:
    """Return what printf prints, roughly: the format with its placeholders replaced by words."""
    places = re.findall(r"%[-0-9.]*[a-zA-Z]", form)
    if not places:
        return form
    printed = ""
    while words or not printed:
        turn = form
        for place in places:
            turn = turn.replace(place, "\0" + (words.pop(0) if words else ""), 1)
        printed += turn.replace("\0", "")
    return printed


def _unescaped_text(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def made_by(program: str, words: list[str]) -> list[str]:
    """Return the folders that a command creates."""
    if program == "mkdir":
        return [word for word in words if not word.startswith("-")]
    return (
        [repository.folder for repository in repositories_made(words)] if program == "git" else []
    )


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]
