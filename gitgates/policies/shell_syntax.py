"""Command lines of a shell as the simple commands that it would run, by a grammar of bash.

Quotes, variables that the line itself sets, `cd`, here-documents, substitutions, pipelines, and
programs that start others (`env`, `xargs`, `bash -c`) are followed. What only a shell would know is
`UNKNOWN`. Nothing is run. Both branches of a condition count, and the body of each function.
"""

from __future__ import annotations

import os
import re
from functools import cache

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tree_sitter import Node, Parser

UNKNOWN = "\ue000"  # in a word; no shell gives it a meaning
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
# Programs that start the rest of their words: options that take a value, words before the program.
_STARTERS = {
    **dict.fromkeys(("hatch", "pdm", "pipx", "poetry", "rye", "uv"), ("", 1)),  # run
    **dict.fromkeys(("npx", "uvx"), ("p", 0)),
    "builtin": ("", 0),
    "command": ("", 0),
    "doas": ("uC", 0),
    "env": ("uC", 0),
    "exec": ("a", 0),
    "flock": ("wE", 1),
    "ionice": ("cnp", 0),
    "nice": ("n", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("ioe", 0),
    "sudo": ("ugpChrtTUDR", 0),
    "time": ("fo", 0),
    "timeout": ("ks", 1),
    "watch": ("n", 0),
    "xargs": ("adEILnPs", 0),
}
_WITH_VALUE = ("--signal", "--kill-after", "--unset", "--chdir", "--user", "--group")
_EXEC = ("-exec", "-execdir", "-ok", "-okdir")  # of find
_NO_SHELL = "it cannot be parsed as shell commands"
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_WORDS = ("word", "number", "string", "raw_string", "concatenation", "simple_expansion")
_APART = ("subshell", "command_substitution", "process_substitution")  # where `cd` ends
_DEEPEST = 5  # a script in a script in …
_MOST_PIPES = 3000  # the parser takes the square of that, half a second, without interruption
_MOST_TURNS = 20  # of a loop
_MOST_NODES = 50_000  # with loops in loops
_LONGEST_VALUE = 10_000  # of a variable


class SimpleCommand(Record):
    """One command, its words without their quotes, and what it is run with."""

    words: tuple[str, ...] = ()
    env: Mapping[str, str] = {}  # what the line adds to its environment
    writes: tuple[str, ...] = ()  # files that its output goes to
    cwd: str = ""  # relative to where the line is run, or absolute
    stdin: str = UNKNOWN
    fed: tuple[str, ...] = ()  # what may be among its arguments: what comes by xargs or find


class CommandLine(Record):
    """All commands of a line, in order; those of scripts in it, too."""

    commands: tuple[SimpleCommand, ...] = ()
    trouble: str = ""  # why that may not be all of them


def parse(text: str) -> Node | None:
    """Return the syntax tree of a command line; None if there is no parser, or no time for it."""
    parser = _parser() if text.count("|") <= _MOST_PIPES else None
    return parser.parse(text.encode("utf-8", "replace")).root_node if parser else None


@cache
def _parser() -> Parser | None:
    try:
        core, grammar = _extension("tree_sitter"), _extension("tree_sitter_bash")
        parser: Parser = core.Parser(core.Language(grammar.language()))
    except Exception:  # noqa: BLE001 - whatever is wrong with what is installed
        return None
    return parser


def _extension(package: str) -> Any:  # noqa: ANN401 - a module
    """Load the extension of a package without the package, which would take 25 ms."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(package)
    spec = found and PathFinder.find_spec(f"{package}._binding", found.submodule_search_locations)
    if not spec or not spec.loader:
        raise ImportError(package)
    module = spec.loader.create_module(spec)
    if module is None:
        raise ImportError(package)
    spec.loader.exec_module(module)
    return module


def read(
    text: str,
    env: Mapping[str, str] = {},
    output_of: Callable[[tuple[str, ...], str], str] = lambda _words, _cwd: UNKNOWN,
) -> CommandLine:
    """Return the commands of a line.

    `env`: the variables of the shell; `output_of`: what a program prints that is known beforehand,
    by its words and the folder that it runs in.
    """
    reader = _Shell(env, output_of)
    try:
        reader.script(text)
    except RecursionError:
        reader.trouble = "it is too long, or nested too deeply"
    except (IndexError, ValueError):  # a tree of what is no shell lacks parts
        reader.trouble = _NO_SHELL
    return CommandLine(commands=tuple(reader.found), trouble=reader.trouble)


class _Shell:
    """The shell's state while a line is read."""

    def __init__(
        self, env: Mapping[str, str], output_of: Callable[[tuple[str, ...], str], str]
    ) -> None:
        self.found: list[SimpleCommand] = []
        self.trouble = ""
        self._variables = dict(env)
        self._exported: dict[str, str] = {}
        self._cwd = ""
        self._depth = 0
        self._nodes = 0
        self._output_of = output_of

    def script(self, text: str) -> None:
        """Read a script."""
        # The grammar takes a line that is joined inside of a word for two words.
        root = parse(re.sub(r"(?<=[^\s\\])\\\n", "", text))
        if root is None:
            self.trouble = "the parser for commands cannot be loaded, or would take too long"
        elif self._depth >= _DEEPEST:
            self.trouble = "it has too many scripts in scripts"
        else:
            if root.has_error:
                self.trouble = _NO_SHELL
            self._depth += 1
            self._visit(root, SimpleCommand())
            self._depth -= 1

    def _visit(self, node: Node, given: SimpleCommand) -> None:
        """Read a node; `given` is what is around it: redirections, and a pipe's input."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise RecursionError
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node, given)
            case "variable_assignment":
                name, value = self._assignment(node)
                self._variables[name] = value
            case "redirected_statement":
                self._redirected(node, given)
            case "pipeline":
                self._pipeline(node, given)
            case "for_statement":
                self._loop(node, given)
            case kind if kind in _APART:
                cwd = self._cwd
                self._visit_all(node.named_children, given)
                self._cwd = cwd
            case _:
                self._visit_all(node.named_children, given)

    def _visit_all(self, nodes: Iterable[Node], given: SimpleCommand) -> None:
        for node in nodes:
            self._visit(node, given)

    def _command(self, node: Node, given: SimpleCommand) -> None:
        words: list[str] = []
        env = dict(self._exported)
        is_plain = node.type == "command"
        for child in node.children:
            if child.type in _REDIRECTS:
                given = self._redirect(child, given)
            elif child.type == "variable_assignment":
                name, value = self._assignment(child)
                env |= {name: value} if is_plain else {}
                words += [] if is_plain else [f"{name}={value}"]
            elif child.type != "$":  # of $"text", which is a word apart for the grammar
                words += self._words(child)
        words += given.words
        self._add(given._replace(words=tuple(words), env=env, cwd=self._cwd))

    def _assignment(self, node: Node) -> tuple[str, str]:
        name, _, *values = node.children
        return _text(name), self._value(values[0])[:_LONGEST_VALUE] if values else ""

    def _redirected(self, node: Node, given: SimpleCommand) -> None:
        redirects = [child for child in node.named_children if child.type in _REDIRECTS]
        inner = given
        for child in redirects:
            inner = self._redirect(child, inner)
        at = len(self.found)
        self._visit_all([one for one in node.named_children if one.type not in _REDIRECTS], inner)
        if len(self.found) == at:
            self.found.append(inner._replace(cwd=self._cwd))
        last = self.found[-1]
        # What follows on the line where a here-document begins is a part of that for the grammar.
        for child in redirects:
            for rest in child.named_children if child.type == "heredoc_redirect" else ():
                if rest.type == "pipeline":
                    self._pipeline(rest, given, last)
                elif rest.type in ("command", "list", "redirected_statement"):
                    self._visit(rest, given)

    def _redirect(self, node: Node, given: SimpleCommand) -> SimpleCommand:
        if node.type == "herestring_redirect":
            return given._replace(stdin=self._value(node.named_children[-1]))
        if node.type == "heredoc_redirect":
            for child in node.named_children:
                if child.type in _REDIRECTS:
                    given = self._redirect(child, given)
                elif child.type == "heredoc_body":
                    is_quoted = not _text(node.named_children[0]).isidentifier()
                    given = given._replace(stdin=_text(child) if is_quoted else self._value(child))
                elif child.type in _WORDS:
                    given = given._replace(words=(*given.words, *self._words(child)))
            return given
        goals = [one for one in node.named_children if one.type != "file_descriptor"]
        operator = next((one.type for one in node.children if not one.is_named), "<")
        if not operator.endswith("-"):  # `2>&-` has none
            goal = goals.pop(0)
            value = " ".join(self._words(goal))
            if not operator.startswith("<") and goal.type != "number":
                given = given._replace(writes=(*given.writes, value))
        for one in goals:  # words of the command, for a shell
            given = given._replace(words=(*given.words, *self._words(one)))
        return given

    def _pipeline(
        self, node: Node, given: SimpleCommand, last: SimpleCommand | None = None
    ) -> None:
        for child in node.named_children:
            before = given
            if last:
                fed = tuple(word for word in last.words[1:] if not word.startswith("-"))
                before = given._replace(stdin=self._output(last), fed=fed)
            at = len(self.found)
            self._visit(child, before)
            last = self.found[-1] if len(self.found) > at else None

    def _loop(self, node: Node, given: SimpleCommand) -> None:
        name, *rest = node.named_children
        values = [word for one in rest if one.type != "do_group" for word in self._words(one)]
        for value in values[:_MOST_TURNS] or [UNKNOWN]:
            self._variables[_text(name)] = value
            self._visit_all([one for one in rest if one.type == "do_group"], given)

    # Words

    def _words(self, node: Node) -> list[str]:
        """Return the words that a node becomes; an expansion without quotes may be several."""
        value = self._value(node)
        if node.type == "command_name":
            node = node.children[0]
        if node.type in ("simple_expansion", "expansion", "command_substitution"):
            return value.split()
        if node.type in ("word", "concatenation") and value.split("/")[0] == "~":
            value = self._variables.get("HOME", UNKNOWN) + value[1:]
        return [value]

    def _value(self, node: Node) -> str:
        """Return the text of a node without its quotes, and with what is known put in."""
        text, value = _text(node), UNKNOWN
        match node.type:
            case "raw_string":
                value = text[1:-1]
            case "ansi_c_string":
                value = text[2:-1].encode("latin-1", "replace").decode("unicode_escape", "replace")
            case "string_content":
                value = re.sub(r'\\([$`"\\\n])', _unescaped, text)
            case "simple_expansion" | "expansion" if text.strip("${}").isidentifier():
                value = self._variables.get(text.strip("${}"), UNKNOWN)
            case "command_substitution":
                value = self._substituted(node)
            case "process_substitution" | "arithmetic_expansion" | "simple_expansion" | "expansion":
                self._visit_all(node.named_children, SimpleCommand())
            case '"' | "$":
                value = ""
            case _ if node.children:
                value = self._joined(node)
            case _:
                value = re.sub(r"\\(.)", _unescaped, text, flags=re.DOTALL)
        return value

    def _joined(self, node: Node) -> str:
        whole, at, parts = node.text or b"", node.start_byte, []
        for child in node.children:  # what lies between them is white space
            parts += [whole[: child.start_byte - at].decode("utf-8", "replace"), self._value(child)]
            whole, at = whole[child.end_byte - at :], child.end_byte
        return "".join([*parts, whole.decode("utf-8", "replace")])

    def _substituted(self, node: Node) -> str:
        at = len(self.found)
        self._visit_all([node], SimpleCommand())
        inside = self.found[at:]
        return self._output(inside[0]).rstrip("\n") if len(inside) == 1 else UNKNOWN

    def _output(self, one: SimpleCommand) -> str:
        """Return what a command prints, as far as that is known."""
        match one.words:
            case ("echo", "-e" | "-n" | "-ne" | "-en", *rest) | ("echo" | "printf", *rest):
                return " ".join(rest)
            case ("cat",):
                return one.stdin
        return self._output_of(one.words, one.cwd)

    # Programs that start others

    def _add(self, one: SimpleCommand) -> None:
        self.found.append(one)
        program = os.path.basename(one.words[0]) if one.words else ""
        rest = list(one.words[1:])
        plain = [word for word in rest if not word.startswith("-")]
        if program in ("cd", "pushd"):
            self._cwd = os.path.join(self._cwd, *plain[:1] or [self._variables.get("HOME", "")])
        elif program in ("export", "declare", "typeset"):
            self._export(plain)
        elif program in SHELLS:
            self._nested(_script_of(rest) or (one.stdin if not plain else ""), one)
        elif program in ("eval", "trap", "alias"):
            said = {"eval": " ".join(rest), "trap": "".join(plain[:1])}
            self._nested(said.get(program, "\n".join(word.partition("=")[2] for word in rest)), one)
        elif program == "find" and any(word in _EXEC for word in rest):
            at = min(rest.index(word) for word in _EXEC if word in rest)
            fed = tuple(word for word in rest[:at] if not word.startswith("-"))
            self._add(one._replace(words=tuple(rest[at + 1 :]), fed=fed))
        elif program in _STARTERS:
            self._started(one, program, rest)

    def _export(self, words: list[str]) -> None:
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                self._variables[name] = value
            if name in self._variables:
                self._exported[name] = self._variables[name]

    def _nested(self, text: str, one: SimpleCommand) -> None:
        if UNKNOWN != text != "":
            before = self._cwd, self._exported
            self._exported = {**self._exported, **one.env}
            self.script(text)
            self._cwd, self._exported = before

    def _started(self, one: SimpleCommand, program: str, rest: list[str]) -> None:
        """Read the command that stands behind the options of a program."""
        valued, words_before = _STARTERS[program]
        env = dict(one.env)
        while rest:
            word = rest.pop(0)
            name, equals, value = word.partition("=")
            if program == "env" and word in ("-S", "--split-string"):
                self._nested(" ".join(rest), one)
                return
            if word.startswith("-"):
                at = next((at for at, letter in enumerate(word) if letter in valued), 0)
                rest = rest[word in _WITH_VALUE or 0 < at == len(word) - 1 :]
            elif equals and name.isidentifier() and program in ("env", "sudo", "doas"):
                env[name] = value
            elif words_before:
                words_before -= 1
            else:
                fed = one.fed if program == "xargs" else ()
                self._add(one._replace(words=(word, *rest), env=env, fed=fed))
                return


def _script_of(words: list[str]) -> str:
    """Return the script of a shell's option `-c`; empty if it has none."""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return next((one for one in words[at + 1 :] if not one.startswith("-")), "")
    return ""


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _unescaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]
