"""Make docs/pictures/ from real runs: `make pictures`. Needs the client of `make e2e` and Chromium.

A terminal is an SVG, a page a PNG. Each PNG has the digest of the page that it shows, so that it is
made again only when that has changed, whichever Chromium is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).resolve().parent
sys.path += [str(_HERE), str(_HERE.parent / "tests/client")]

import scenes  # noqa: E402 - from there
from claude import Run  # noqa: E402 - from there

from gitgates.report.page import page  # noqa: E402 - the checkout is put into the path first

PICTURES = _HERE / "pictures"
_PAGE_PX = (960, 1180)
_DIGEST = b"tEXtsource\x00"
# rich's own, which would have a browser load fonts.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Write every picture that has changed."""
    PICTURES.mkdir(exist_ok=True)
    for name, content in contents().items():
        path = PICTURES / name
        if path.suffix == ".svg":
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or digest_in(path.read_bytes()) != digest_of(content):
            path.write_bytes(screenshot(content))


def contents() -> dict[str, str]:
    """Return file name → SVG of each terminal, HTML of each page."""
    with tempfile.TemporaryDirectory() as folder:
        commit, agent, headless, undo = (_shop(folder, name) for name in ("a", "b", "c", "d"))
        refused = scenes.refused_commit(commit)
        kept = _transcript(agent, scenes.kept_at_work(agent))
        undone = scenes.undone(undo)
        results = scenes.headless_runs(headless)
        stats = [("gitgates runs stats", headless.run("gitgates runs stats"))]
    return {
        "refused-commit.svg": _svg("shop", 100, _typed(refused)),
        "kept-at-work.svg": _svg("Claude Code", 92, kept),
        "undone.svg": _svg("shop", 110, _typed(undone)),
        "runs-stats.svg": _svg("shop", 112, _typed(stats)),
        "run-page.png": page(results[0]),
    }


def _shop(folder: str, name: str) -> scenes.Shop:
    path = Path(folder, name)
    path.mkdir()
    return scenes.Shop(path)


def _typed(commands: list[tuple[str, str]]) -> Iterator[Text | Padding]:
    """Return the lines of a terminal in which commands were typed."""
    for command, output in commands:
        yield Text.assemble(("$ ", "bold green"), (command, "bold"))
        if output:
            yield Text.from_ansi(output.rstrip())
            yield Text()


def _transcript(shop: scenes.Shop, run: Run) -> Iterator[Text | Padding]:
    """Return what happened in a session of an agent, in the way in which Claude Code shows it."""
    yield Text(f"> {scenes.PROMPT}", "bold")
    yield Text()
    for entry in run.stream:
        if entry.get("type") == "assistant":
            for block in entry["message"]["content"]:
                yield from _block(shop, block)
        elif entry.get("subtype") == "hook_response" and entry["hook_event"] == "Stop":
            yield from _stop(shop, entry["stdout"])


def _block(shop: scenes.Shop, block: dict[str, Any]) -> Iterator[Text | Padding]:
    if block["type"] == "text":
        yield Text.assemble("● ", block["text"])
        yield Text()
    elif block["name"] != "Read":
        name = Path(block["input"]["file_path"]).relative_to(shop.path)
        yield Text.assemble(("● ", "green"), (block["name"], "bold"), f"({name})")
        yield Text()


def _stop(shop: scenes.Shop, answer: str) -> Iterator[Text | Padding]:
    """Return what the hook of gitgates answered when the agent wanted to stop."""
    reason = json.loads(answer)["reason"] if answer.strip() else ""
    how = ("blocked", "bold red") if reason else ("passed", "bold green")
    yield Text.assemble(("  └ Stop hook: gitgates agent-hook claude  ", "dim"), how)
    for line in shop.steady(reason).splitlines():
        yield Padding(Text(line, "bold" if line.startswith("#") else ""), (0, 0, 0, 4))
    yield Text()


def _svg(title: str, columns: int, lines: Iterator[Text | Padding]) -> str:
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line)
    return console.export_svg(title=title, code_format=_SVG, unique_id="t")


def screenshot(html: str) -> bytes:
    """Return a PNG of a page, with the digest of it."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("make pictures needs Chromium, to show a page. On Debian: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.png")
        source.write_text(html, encoding="utf-8")
        argv = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        argv += [f"--user-data-dir={folder}/profile", "--blink-settings=preferredColorScheme=1"]
        argv += [f"--window-size={_PAGE_PX[0]},{_PAGE_PX[1]}", f"--screenshot={target}"]
        subprocess.run([*argv, source.as_uri()], capture_output=True, check=True, timeout=120)
        return _with_digest(target.read_bytes(), digest_of(html))


def digest_of(html: str) -> bytes:
    """Return what a PNG says of the page that it shows."""
    return hashlib.sha256(html.encode()).hexdigest().encode()


def digest_in(png: bytes) -> bytes:
    """Return what a PNG says of the page that it shows; nothing if it does not."""
    start = png.find(_DIGEST)
    return png[start + len(_DIGEST) : start + len(_DIGEST) + 64] if start >= 0 else b""


def _with_digest(png: bytes, digest: bytes) -> bytes:
    chunk = _DIGEST + digest
    whole = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    end = len(png) - 12  # the last chunk, IEND, stays the last
    return png[:end] + whole + png[end:]


if __name__ == "__main__":
    main()
