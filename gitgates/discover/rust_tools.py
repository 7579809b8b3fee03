"""Rust: what cargo brings, and clippy where it is set up."""

from __future__ import annotations

from gitgates.discover.task import Project, Task

LANGUAGE = "Rust"
MARKERS = ("Cargo.toml",)
READS = ("Cargo.toml",)

_RUST = ("*.rs", "Cargo.toml", "Cargo.lock")


def find_defaults(project: Project) -> list[Task]:
    """Return the tasks of a crate or workspace."""
    if "Cargo.toml" not in project.names:
        return []
    check = ("check", "cargo check --all-targets", "cargo check")
    if {"clippy.toml", ".clippy.toml"} & project.names or "clippy]" in project.texts.get(
        "Cargo.toml", ""
    ):
        check = ("lint", "cargo clippy --all-targets", "clippy")
    tools = (("format", "cargo fmt --all --check", "cargo fmt"), check)
    found = [
        Task(name=name, command=command, source="Cargo.toml", tool=tool, files=_RUST)
        for name, command, tool in tools
    ]
    found.append(Task(name="test", command="cargo test", source="Cargo.toml", tool="cargo test"))
    return [task._replace(scope="rust") for task in found]
