"""What an assertion claims: about what, and how much, as far as its text tells. Pure.

`assert f(1) == 2` is exact, and about `f(1)`; `assert f(1)` is loose, and about the same. Where it
is not plain which of them one is, it is neither: then nothing is said of it.
"""

from __future__ import annotations

import re

from gitgates.record import Record
from gitgates.weakening.pieces import Piece, brackets_end, elements, statement_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.source import Side

EXACT, LOOSE, SAME = "exact", "loose", "same on both sides"

_LONGEST = 4000  # characters of an assertion
_SHOWN = 120  # of one that is shown
_OPEN = ("(", "[", "{", "\\")
_SHORT = 30  # of a value that is nothing but a wildcard
_EXACT_WORDS = (
    "allclose almostequal anycall areequal aresame arrayequal arrayequals awaitedoncewith "
    "awaitedwith be beequivalentto calledonce calledoncewith calledwith containexactly "
    "containsexactly count countequal deepequal deepstrictequal dictequal elementsmatch eq "
    "eql equal equalerror equals equalto equalvalues errorcontains erroris exactly "
    "hascalls haslength hassize hastext is isclose isequalto issameas iterableequals "
    "jsoneq len like linesmatch listequal matcharray multilineequal raiseerror same sameas "
    "sequenceequal setequal strictequal tobe tobecloseto toequal toequaltypeof "
    "tohavebeencalledtimes tohavebeencalledwith tohavebeenlastcalledwith "
    "tohavebeennthcalledwith tohavelength tohavetextcontent tohavevalue "
    "tomatchinlinesnapshot tomatchobject tomatchsnapshot tostrictequal tothrow "
    "tothrowerror tupleequal"
)
_EXACT = frozenset(_EXACT_WORDS.split())
_LOOSE_WORDS = (
    "arrayhaskey awaited bea bean beaninstanceof beassignableto bedefined bekindof "
    "beoftype bepositive bepresent betruthy called condition contain contains error exist "
    "exists greater greaterequal greaterorequal greaterthan greaterthanorequal in include "
    "includes instanceof isa isassignablefrom isdefined isgreaterthan isinstance "
    "isinstanceof iskindof islessthan isnotempty isnotnil isnotnone isnotnull ispositive "
    "istrue kindof less lessequal lessthan lessthanorequal ne noerror notbeempty notbenil "
    "notbenull notempty notequal notequals notnil notnone notnull notsame notzero ok "
    "positive refutenil respondto stringcontainsstring tobedefined tobegreaterthan "
    "tobegreaterthanorequal tobeinstanceof tobeinthedocument tobelessthan "
    "tobelessthanorequal tobetruthy tocontain tohavebeencalled tohaveproperty true truthy"
)
_LOOSE = frozenset(_LOOSE_WORDS.split())
_OFTEN_EMPTY = frozenset(("tothrow", "tothrowerror", "raiseerror"))
# With "not" before them, they say that there is something at all.
_NOTHING = frozenset(
    ["tobenull", "tobeundefined", "benil", "beempty", "toequal", "tobe", "eq", "equal", "be"]
)
_CHAIN = re.compile(r"(?:expect|assertThat|expectThat)\b(?:\.(?:soft|poll)\b)?\s*")
_SHOULD = re.compile(r"\.Should\w*\(\s*\)\s*\.(?P<word>\w+)\s*")
_CALL = re.compile(
    r"(?:\.|::|->)?(?:[\w$]+(?:\.|::|->))*(?P<name>\w+)!?\s*(?:<[^<>()\n]*>)?\s*(?=[(\s]|$)"
)
_RUBY = re.compile(r"\s*\.(?P<to>to|not_to|to_not)\b\s*(?P<word>\w+)[?!]?\s*")
_OPERATOR = re.compile(
    r"(?P<exact>===?|\bis\b(?!\s+not\b))|(?P<loose>!==?|>=|<=|<(?![<-])|(?<![->=])>(?!>)|\bis\s+not\b|\bnot\s+in\b|\bin\b)"
)
_ONE_OF_TWO = r"\b(?:True|False|true|false|None|null|nil|undefined|NULL)\b"
_TWO = re.compile(rf"^{_ONE_OF_TWO}$")
_ANY = re.compile(r"(?:\bmock\.)?\bANY\b|expect\.any(?:thing)?\b|\banything\b")
_LITERAL = re.compile(
    r"^(?:[-+\d._eE,\s()\[\]{}]*|[rbfu]*['\"`].*['\"`]|" + _ONE_OF_TWO + r")$", re.DOTALL
)
_WRAPPED = re.compile(r"^(?:len|bool|str|int|list|isinstance|callable|hasattr|any|all|size|count)$")
_SUFFIX = re.compile(
    r"\.(?:is_some|is_ok|is_err|is_none|length|size|present\?|any\?|len)(?:\(\))?$"
)
_TESTING = frozenset(("t", "tt", "tb", "b"))  # what Go passes on


class Claim(Record):
    """One assertion."""

    shown: str  # its line; all of it where that ends in an open bracket
    weight: int = 1  # how many comparisons are in it
    force: str = ""  # EXACT, LOOSE, SAME; empty: we cannot tell
    about: tuple[str, ...] = ()  # which expressions, without white space


def read_claim(side: Side, place: int) -> Claim:
    """Return what the assertion says that begins at a place."""
    piece = statement_at(side, place, _LONGEST)
    line = side.line_at(place)
    # Of one that goes on behind its first line, that line may say nothing.
    shown = " ".join(piece.text.split())[:_SHOWN] if line.endswith(_OPEN) else line
    return _read(side, place, piece)._replace(shown=shown)


def is_about_the_same(exact: Claim, loose: Claim) -> bool:
    """Tell whether a loose claim is about what an exact one is about, or about the whole of it."""
    for subject in loose.about:
        for one in exact.about:
            if one == subject or one.startswith((f"{subject}.", f"{subject}[", f"{subject}->")):
                return True
    return False


def _read(side: Side, place: int, piece: Piece) -> Claim:
    if found := _SHOULD.match(piece.code):
        start = max(0, side.text.rfind("\n", 0, place))
        subject = Piece(side.code[start:place], side.text[start:place]).cut(0)
        return _judge(found["word"], [subject], piece.cut(found.end()))
    if found := _CHAIN.match(piece.code):
        return _chain(piece.cut(found.end()))
    if re.match(r"assert\b(?![.:!])", piece.code):
        said = piece.cut(len("assert")).split(r",|(?<=\s):(?=\s)")
        return _expression(_unwrapped(said[0])) if said else Claim("")
    if found := _CALL.match(piece.code):
        return _call(side, place, (found["name"], piece.cut(found.end())))
    return Claim("")


def _call(side: Side, place: int, call: tuple[str, Piece]) -> Claim:
    """Read `assertEqual(a, b)`, `assert_eq!(a, b)`, `assert_equal a, b`, `mock.assert_called()`."""
    name, rest = call
    args = elements(rest) if rest.inside() is not None else rest.split(",")
    if args and args[0].text in _TESTING:
        args = args[1:]
    word = _normal(name)
    if word == "" and args:
        return _expression(_unwrapped(args[0]))
    if word in ("true", "istrue") and args:
        return _expression(_unwrapped(args[0]))
    if "call" in word or "await" in word:
        owner = re.search(r"[\w.\[\]]+(?=\.$)", side.text[max(0, place - 200) : place])
        force = EXACT if word in _EXACT else LOOSE if word in _LOOSE else ""
        return Claim("", 1, force, (owner.group(),) if owner else ())
    if word in _EXACT and len(args) > 1:
        return _exact(args[0], args[1])
    if word in _LOOSE:
        return Claim("", 1, LOOSE, _subjects(args[:2]))
    return Claim("")


def _normal(name: str) -> str:
    """Return the name of an assertion without what is not of its meaning."""
    word = name.replace("_", "").lower().removeprefix("debug")
    return word.removeprefix("assert").removeprefix("that")


def _chain(rest: Piece) -> Claim:
    """Read what follows `expect`: `(a).toBe(b)`, `(a).to eq(b)`, `(a).not.toBeNull()`."""
    end = brackets_end(rest)
    subject = rest.cut(0, end).inside()
    tail = rest.cut(end)
    if subject is None:
        return Claim("")
    about = subject.split(",")[:1]
    if ruby := _RUBY.match(tail.code):
        word = f"not{ruby['word']}" if ruby["to"] != "to" else ruby["word"]
        return _judge(word, about, tail.cut(ruby.end()))
    words = list(re.finditer(r"\.(\w+)\s*", tail.flat()))
    if not words:
        return Claim("")
    negated = any(word[1] == "not" for word in words)
    return _judge(
        f"not{words[-1][1]}" if negated else words[-1][1], about, tail.cut(words[-1].end())
    )


def _judge(word: str, about: list[Piece], rest: Piece) -> Claim:
    """Return what a matcher says of a subject."""
    name = word.replace("_", "").lower()
    args = elements(rest) if rest.inside() is not None else rest.split(",")
    if name == "be" and rest.code[:1] in "<>":
        name = "bea"
    subjects = _subjects(about)
    if name.startswith("not"):
        is_loose = name in _LOOSE or name[3:] in _NOTHING
        return Claim("", 1, LOOSE if is_loose else "", subjects)
    if name in _LOOSE:
        return Claim("", 1, LOOSE, subjects)
    if name in _OFTEN_EMPTY:
        return Claim("", 1, EXACT if args else LOOSE, subjects)
    if name in _EXACT and args and about:
        return _exact(about[0], args[0])
    return Claim("", 1, EXACT if name in _EXACT else "", subjects)


def _expression(piece: Piece) -> Claim:
    """Read a condition."""
    either = piece.split(r"\bor\b|\|\|")
    if any(_TWO.match(part.text) for part in either):
        return Claim("")  # one that always holds is told by itself
    if len(either) > 1:
        parts = [_expression(_unwrapped(part)) for part in either]
        return Claim("", 1, LOOSE, tuple(one for part in parts for one in part.about))
    both = piece.split(r"\band\b|&&")
    if len(both) > 1:
        parts = [_expression(_unwrapped(part)) for part in both]
        force = EXACT if any(part.force == EXACT for part in parts) else ""
        about = tuple(one for part in parts for one in part.about)
        return Claim("", sum(part.weight for part in parts), force, about)
    found = _OPERATOR.search(piece.flat())
    if found:
        left, right = piece.cut(0, found.start()), piece.cut(found.end())
        if found["exact"]:
            return _exact(left, right)
        return Claim("", 1, LOOSE, _subjects([left, right]))
    if re.match(r"not\b|!", piece.code):
        return Claim("")  # `x == ""` and `not x` are much alike
    return Claim("", 1, LOOSE, _subjects([piece]))


def _exact(left: Piece, right: Piece) -> Claim:
    if _TWO.match(left.text) or _TWO.match(right.text):
        return Claim("")  # `x is True` says little more than `x`
    about = _subjects([left, right])
    if left.plain() == right.plain():
        return Claim("", 1, SAME, about)
    if _ANY.search(right.code) and len(right.text) < _SHORT:
        return Claim("", 1, LOOSE, about)
    return Claim("", max(1, len(elements(left)), len(elements(right))), EXACT, about)


def _subjects(pieces: list[Piece]) -> tuple[str, ...]:
    """Return the expressions that a claim is about, and what is in the first call of each."""
    found: list[str] = []
    for piece in pieces:
        prefix = re.match(r"(?:await\s+|&)*", piece.code)
        bare = piece.cut(prefix.end() if prefix else 0)
        if _LITERAL.match(bare.text):
            continue
        found += [bare.plain(), _SUFFIX.sub("", bare.plain())]
        name, _, _ = bare.code.partition("(")
        call = bare.cut(len(name)) if _WRAPPED.match(name) else None
        if call is not None and (args := elements(call)):
            found.append(args[0].plain())
    return tuple(dict.fromkeys(found))


def _unwrapped(piece: Piece) -> Piece:
    """Return a condition without the brackets around all of it; a tuple keeps its own."""
    while piece.code[:1] == "(" and (inside := piece.inside()) is not None:
        parts = inside.split(",")
        if not parts:
            break
        piece = parts[0]
    return piece
