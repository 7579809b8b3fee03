"""Recognise the output of a tool that exited with status 0 and had nothing to check. Pure.

Exit status 0 says that nothing was wrong, not that something was looked at. Only what a tool states
in so many words counts, and only if no other line shows that something was checked: a tool that
is not known here passes, as before. Written from real outputs, which lie in tests/outputs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Gate, GateResult

# Parts of what tools print when they had nothing to check, in lower case. Every output is searched
# for these, so that a hook imports `re` only if one of them is there.
_PARTS = (
    b"no test",
    b"0 test",
    b"0 passing",
    b" skipped",
    b"[100%]",
    b" collected in ",
    b" pass 0",
    b"file ignored because",
    b"no projects matched",
    b"no packages",
    b"no python files",
    b"no source files",
    b"checked 0 files",
    b"congratulations :)",
    b"(no files to check)",
    b"nothing to be done for",
    b"is up to date",
)
_NOTHING = rb"""(?imx)^.*?(?P<words>
    no\ tests\ ran\b[^\n=]*  # pytest, whose status is 5 unless a plugin hides that; unittest
    | ran\ 0\ tests\ in\ \S+  # unittest before Python 3.12
    | (?<!\d)\d+\ skipped(?:,\ \d+\ \w+)*\ in\ [\d.]+\ ?s  # pytest, where each test was skipped
    | ^s+\ +\[100%\]$  # the same with -qq
    | (?<![\d/])[\d/]+\ tests?\ collected\ in\ [\d.]+\ ?s  # pytest --collect-only
    | ^Tests:\ +(?:\d+\ (?:skipped|todo),\ )+\d+\ total$  # jest
    | ^\ +Tests\ +\d+\ (?:skipped|todo)(?:\ \|\ \d+\ todo)?\ \(\d+\)$  # vitest
    | ^(?:\#|\xe2\x84\xb9)\ pass\ 0$  # node --test
    | ^nox\ >\ Session\ \S+\ skipped.*
    | no\ projects\ matched\ the\ filters  # pnpm
    | \[no\ test\ files\]|\[no\ tests\ to\ run\]|matched\ no\ packages  # go
    | running\ 0\ tests$  # cargo
    | no\ tests\ found,\ exiting.*|no\ test\ files\ found,\ exiting.*  # jest, vitest
    | (?<!\d)0\ passing\b  # mocha
    | no\ python\ files\ found.*|no\ python\ files\ are\ present[^.\n]*  # ruff, black
    | no\ source\ files\ found  # pyright
    | checked\ 0\ files\b  # biome
)"""
# Evidence of work, which outweighs that: counts of tests and files, go's packages.
_WORK = rb"""(?mx)
    \b[1-9]\d*\ (?:passed|failed|xfailed|xpassed|passing|failing|specs?|examples?)\b
    | \b(?:[Rr]an|[Rr]unning|[Cc]hecked|[Cc]hecking)\ [1-9]\d*\ (?:tests?|files?|source)\b
    | ^(?:\#|\xe2\x84\xb9)\ (?:pass|fail|cancelled)\ [1-9]\d*$
    | ^(?!s+\ )[a-zA-Z.]+\ +\[\ *\d+%\]$
    | ^nox\ >\ Session\ \S+\ was\ successful\.$
    | ^ok\ +\t\S+\t(?!.*\[no\ tests\ to\ run\])
    | \ in\ [1-9]\d*\ source\ files?\b
    | \b[1-9]\d*\ files?\ (?:already\ formatted|would\ be\ left\ unchanged|left\ unchanged)
"""
# All that tox prints of an environment without commands.
_TOX = (
    rb"(?x)\s*(?:[\w.-]+:\ (?:OK|install|freeze|remove|recreate|find)|congratulations\ :\)).*|\s*"
)
# All that make prints of a target whose file is there, or that has no recipe.
_MAKE = rb"(?:\w*make(?:\[\d+\])?: (?:Nothing to be done for .*|.* is up to date\.)|\s*)"
# A finding of ESLint about a file that was passed to it, and one about what is in a file.
_IGNORED = rb"(?m)^ +0:0 +warning +File ignored because "
_FINDING = rb"(?m)^ +\d+:\d+ +(?:warning|error) "
_COLOUR = rb"\x1b\[[0-9;]*m"
_PRE_COMMIT_IDLE = b"(no files to check)Skipped"
_LONGEST = 120


def without_empty_pass(result: GateResult, gate: Gate, paths: tuple[str, ...] = ()) -> GateResult:
    """Return the result of a gate that passed: another one if it had nothing to check.

    Its status is then `unchecked`; or `skipped`, if pre-commit's hooks matched no file.
    `paths`: those that were passed to it.
    """
    if result.changed_paths:
        return result
    if gate.pre_commit is not None:
        return _of_framework(result)
    text = result.output.lower()
    if not any(part in text for part in _PARTS):
        return result
    import re  # nothing else of a git hook needs it

    plain = re.sub(_COLOUR, b"", result.output)
    if _PRE_COMMIT_IDLE in plain:
        return _of_framework(result)
    reason = _reason(plain, len(paths))
    return result._replace(status="unchecked", reason=reason) if reason else result


def _reason(plain: bytes, count: int) -> str:
    """Return why nothing was checked, by an output without colours; empty: it may have been."""
    import re  # as above

    if all(re.fullmatch(_TOX, line) for line in plain.splitlines()):
        return "tox ran no command"
    if all(re.fullmatch(_MAKE, line) for line in plain.splitlines()):
        return "make had nothing to do"
    ignored = len(re.findall(_IGNORED, plain))
    if ignored and ignored == len(re.findall(_FINDING, plain)) and ignored >= count:
        return "eslint ignores each file that it got"
    stated = re.search(_NOTHING, plain)
    if not stated or re.search(_WORK, plain):
        return ""
    return stated["words"].decode("utf-8", "replace").strip()[:_LONGEST]


def _of_framework(result: GateResult) -> GateResult:
    ends = [line for line in result.output.split(b"\n") if line.endswith((b"Passed", b"Skipped"))]
    if not ends or any(line.endswith(b"Passed") for line in ends):
        return result
    if all(line.endswith(_PRE_COMMIT_IDLE) for line in ends):
        return result._replace(status="skipped", reason="its hooks match no path of this event")
    return result._replace(status="unchecked", reason="each of its hooks was skipped")
