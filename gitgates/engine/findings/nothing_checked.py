"""Recognise the output of a tool that exited with status 0 and had nothing to check. Pure.

Exit status 0 says that nothing was wrong, not that something was looked at. Only what a tool states
in so many words counts, and only if no other line shows that something was checked: a tool that
is not known here passes, as before. Written from real outputs, which lie in tests/outputs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Gate, GateResult

# Parts of what tools print when they had nothing to check, in lower case. Every output is searched
# for these, so that a hook reads the table only if one of them is there.
_PARTS = (
    b"no test|0 test|0 passing| skipped|[100%]| collected in | pass 0|file ignored because|"
    b"no projects matched|no packages|no python files|no source files|checked 0 files|"
    b"congratulations :)|(no files to check)|nothing to be done for|is up to date"
).split(b"|")
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
    if gate.program.pre_commit is not None:
        return _of_framework(result)
    text = result.output.lower()
    if not any(part in text for part in _PARTS):
        return result
    import re  # most outputs need neither it nor the table

    plain = re.sub(_COLOUR, b"", result.output)
    if _PRE_COMMIT_IDLE in plain:
        return _of_framework(result)
    reason = _reason(plain, len(paths))
    return result._replace(status="unchecked", reason=reason) if reason else result


def _reason(plain: bytes, count: int) -> str:
    """Return why nothing was checked, by an output without colours; empty: it may have been."""
    import re  # as above
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "nothing_checked.toml"), "rb") as file:
        table = tomllib.load(file)
    for reason, line in table["only"].items():
        if all(re.fullmatch(line.encode(), each) for each in plain.splitlines()):
            return str(reason)
    ignored = len(re.findall(_IGNORED, plain))
    if ignored and ignored == len(re.findall(_FINDING, plain)) and ignored >= count:
        return "eslint ignores each file that it got"
    nothing, work = ("|".join(table[name]).encode() for name in ("nothing", "work"))
    stated = re.search(rb"(?im)^.*?(?P<words>%b)" % nothing, plain)
    if not stated or re.search(rb"(?m)%b" % work, plain):
        return ""
    return stated["words"].decode("utf-8", "replace").strip()[:_LONGEST]


def _of_framework(result: GateResult) -> GateResult:
    ends = [line for line in result.output.split(b"\n") if line.endswith((b"Passed", b"Skipped"))]
    if not ends or any(line.endswith(b"Passed") for line in ends):
        return result
    if all(line.endswith(_PRE_COMMIT_IDLE) for line in ends):
        return result._replace(status="skipped", reason="its hooks match no path of this event")
    return result._replace(status="unchecked", reason="each of its hooks was skipped")
