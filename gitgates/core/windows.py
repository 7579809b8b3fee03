"""Refuse to run on native Windows, with the page that says why. Needs no POSIX module. Cold."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError

_PAGE = "docs/explanation/windows.md"


class UnsupportedError(GitgatesError):
    """gitgates does not run on this system."""

    exit_status = 69


def unsupported() -> UnsupportedError:
    """Return the error. ASCII only: a Windows console may have no other characters."""
    return UnsupportedError(
        "Windows itself is not supported; nothing was checked",
        f"Use it in WSL, the Windows Subsystem for Linux. How, and why: {page()}",
    )


def page() -> str:
    """Return the address of the page; in an installation without one, where the page is."""
    from importlib import metadata  # slow, but nothing else will run

    try:
        urls = metadata.metadata("gitgates").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        urls = []
    for url in urls:
        label, _, address = url.partition(", ")
        if label == "Documentation":
            return str(address).replace("docs/README.md", _PAGE)
    return f"{_PAGE} in the source distribution of gitgates"


def answer(error: UnsupportedError) -> str:
    """Return what an agent's hook prints: shown to the person, without a decision.

    Because of its exit status, some agents would refuse every tool call.
    """
    import json  # as above

    return json.dumps({"systemMessage": f"gitgates: {error}"})
