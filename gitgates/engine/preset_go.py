"""Find failures in what `go test`, `go build` and `go vet` print. Cold and pure.

A package is named after its tests, so they wait for it. Source: go.dev/src/testing, and
go.dev/src/cmd/go/internal/test.
"""

from __future__ import annotations

import re

from gitgates.engine.preset_found import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FAIL = re.compile(r" *--- FAIL: (?P<name>\S+)")
_ABOUT = re.compile(r"=== (?:RUN|NAME|CONT) +(?P<name>\S+)| *--- (?:PASS|SKIP): ")
_LOG = re.compile(r"\s+[^\s:]+\.go:\d+: (?P<message>.*)|\s+Error: +\t?(?P<testify>\S.*)")
_PANIC = re.compile(r"(?P<message>(?:panic|fatal error): .+)")
_PACKAGE = re.compile(
    r"FAIL\s+(?P<name>\S+)(?:\s+(?:[\d.]+s|\(cached\)|\[(?P<why>\w+ failed)\])).*"
)
_COMPILE = re.compile(
    r"(?:vet: )?(?P<path>[^\s:][^:]*\.go):(?P<place>\d+(?::\d+)?): (?P<message>.+)"
)


class _Package:
    """What has been read of a package whose name is not known yet."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.said: dict[str, str] = {}  # test → the first thing that it said
        self.about = ""  # the test that the lines are about
        self.panic = ""

    def test_failed(self, name: str) -> None:
        self.failed.append(name)
        self.about = name

    def hear(self, message: str) -> None:
        if message and self.about:
            self.said.setdefault(self.about, message)

    def failures(self, package: str, why: str) -> Iterator[Found]:
        """Yield them; a test that failed only through its subtests is none by itself."""
        parents = {name.rpartition("/")[0] for name in self.failed if "/" in name}
        tests = [name for name in dict.fromkeys(self.failed) if name not in parents]
        for name in tests:
            said = self.said.get(name, "")
            title = f"{package} {name}: {said}" if said else f"{package} {name}"
            yield Found(title=title, message=said, identity=f"{package}\n{name}")
        if not tests:
            said = self.panic or why or "failed"
            yield Found(title=f"{package}: {said}", message=said, identity=package)


def go_test(text: str) -> Iterator[Found]:
    """Yield tests that failed, errors of the compiler, and packages that failed as a whole."""
    package, building, broken = _Package(), False, False
    for line in text.split("\n"):
        error = _COMPILE.fullmatch(line) if building or line.startswith("vet: ") else None
        # Errors of the compiler stand below `# package`; a log may have lines that look like them.
        building = line.startswith("# ") or (building and (bool(error) or line[:1] == "\t"))
        if error:
            broken = True
            yield _error(error)
        elif match := _PACKAGE.fullmatch(line):
            if not (match["why"] and broken):  # else the errors have said it
                yield from package.failures(match["name"], match["why"] or "")
            package = _Package()
        else:
            _read(line, package)
    if package.failed:
        yield from package.failures("", "")


def _error(match: re.Match[str]) -> Found:
    path, place, said = match["path"], match["place"], match["message"]
    return Found(title=f"{path}:{place}: {said}", message=said, identity=path, place=place)


def _read(line: str, package: _Package) -> None:
    if match := _FAIL.match(line):
        package.test_failed(match["name"])
    elif match := _ABOUT.match(line):
        package.about = match["name"] or ""
    elif match := _PANIC.match(line):
        package.panic = package.panic or match["message"]
        package.hear(match["message"])
    elif match := _LOG.fullmatch(line):
        package.hear((match["message"] or match["testify"] or "").strip())
