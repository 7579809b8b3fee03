"""Go: its own toolchain, and golangci-lint where it is set up."""

from __future__ import annotations

from gitgates.discover.task import Project, Task

LANGUAGE = "Go"
MARKERS = ("go.mod",)
READS: tuple[str, ...] = ()

_GO = ("*.go", "go.mod", "go.sum")
_LINTER = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")
# gofmt names the files that it would change, and exits 0 all the same.
_GOFMT = 'unformatted=$(gofmt -l "$@") && echo "$unformatted" && test -z "$unformatted"'


def find_defaults(project: Project) -> list[Task]:
    """Return the tasks of a Go module."""
    if "go.mod" not in project.names:
        return []
    linter = next((name for name in _LINTER if name in project.names), "")
    lint = Task(name="lint", command="go vet ./...", source="go.mod", tool="go vet", files=_GO)
    if linter:
        lint = lint._replace(command="golangci-lint run", source=linter, tool="golangci-lint")
    found = [
        Task(
            name="format",
            command=_GOFMT,
            source="go.mod",
            tool="gofmt",
            files=("*.go",),
            exclude=("vendor/",),
            pass_files=True,
        ),
        lint,
        Task(name="test", command="go test ./...", source="go.mod", tool="go test"),
        Task(name="build", command="go build ./...", source="go.mod", tool="go build"),
    ]
    return [task._replace(scope="go") for task in found]
