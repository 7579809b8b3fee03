"""The pictures of docs/reference/benchmarks.md: each in light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import commits
import matplotlib as mpl
import small
import storm
from matplotlib.figure import Figure
from peers import GITGATES

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Figures, Measured


class _Theme(NamedTuple):
    """The colours of a picture, those of GitHub."""

    name: str
    text: str
    back: str
    line: str
    ours: str
    others: tuple[str, ...]


_THEMES = (
    _Theme(
        "light", "#1f2328", "#ffffff", "#d0d7de", "#0969da",
        ("#57606a", "#bf8700", "#8250df", "#cf222e", "#1a7f37"),
    ),
    _Theme(
        "dark", "#e6edf3", "#0d1117", "#30363d", "#58a6ff",
        ("#8b949e", "#d29922", "#bc8cff", "#ff7b72", "#3fb950"),
    ),
)  # fmt: skip
_SET = {
    commits.COLD: "cold",
    commits.STOPPED: "after an agent's Stop",
    commits.AGAIN: "again, unchanged",
    commits.ONE_CHANGED: "one file changed",
    commits.WORKTREE: "in a second worktree",
    commits.PARTIAL: "partially staged",
}
# Text stays text, and the same figures make the same file.
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "gitgates", "font.size": 9}


class _Panel(NamedTuple):
    """Bars: name → seconds."""

    title: str
    bars: dict[str, float]
    mark: float = 0  # a line, such as the ideal


def draw(found: Figures, folder: Path) -> None:
    """Write every picture."""
    scenarios = found.scenarios
    noop = [
        _panel(scenarios[key], f"{count} gate{'s' * (count > 1)}")
        for count in small.COUNTS
        if (key := small.noop_key(count)) in scenarios
    ]
    whole = [_panel(scenarios[key], title) for key, title in _SET.items() if key in scenarios]
    at_once = []
    if one := scenarios.get(storm.KEY):
        ideal = found.storm.ideal_s()
        at_once.append(
            _panel(one, f"{found.storm.worktrees} commits; the line is the ideal", ideal)
        )
        waits = {name: max(found.waits[name]) for name in one.samples}
        at_once.append(_Panel("a person's commit meanwhile", waits))
    with mpl.rc_context(_STYLE):
        for theme in _THEMES:
            for name, panels in (("hooks", noop), ("set", whole), ("worktrees", at_once)):
                _save(_bars(panels, theme), folder / f"bench-{name}-{theme.name}.svg")
            _save(_sizes(scenarios, theme), folder / f"bench-sizes-{theme.name}.svg")


def _panel(one: Measured, title: str, mark: float = 0) -> _Panel:
    names = [name for name in one.samples if name != small.BEFORE]
    return _Panel(title, {name: one.median(name) for name in names}, mark)


def _bars(panels: list[_Panel], theme: _Theme) -> Figure:
    columns = min(3, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(10, 2.3 * rows), layout="constrained", facecolor=theme.back)
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        names, seconds = list(panel.bars), list(panel.bars.values())
        colours = [theme.ours if name == GITGATES else theme.others[0] for name in names]
        axes.barh(names, seconds, color=colours, height=0.62)
        for place, value in enumerate(seconds):
            axes.text(value, place, f" {_time(value)}", va="center", color=theme.text)
        axes.set_xlim(0, max(*seconds, panel.mark) * 1.3)
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.set_title(panel.title, color=theme.text, loc="left", fontsize=10)
        axes.tick_params(axis="y", length=0, colors=theme.text)
        if number % columns and names == list(panels[number - 1].bars):
            axes.set_yticklabels([])
        if panel.mark:
            axes.axvline(panel.mark, color=theme.text, linewidth=1, linestyle=":")
        _plain(axes, theme, ("left",))
    return figure


def _sizes(scenarios: dict[str, Measured], theme: _Theme) -> Figure:
    figure = Figure(figsize=(10, 3.4), layout="constrained", facecolor=theme.back)
    axes = figure.add_subplot()
    sizes = [files for files in small.SIZES if small.size_key(files) in scenarios]
    others = iter(theme.others)
    for name in scenarios[small.size_key(sizes[0])].samples if sizes else ():
        seconds = [scenarios[small.size_key(files)].median(name) for files in sizes]
        is_ours = name == GITGATES
        colour = theme.ours if is_ours else next(others)
        width = 2.5 if is_ours else 1.3
        axes.plot(sizes, seconds, color=colour, linewidth=width, marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{files:,} files" for files in sizes])
    axes.minorticks_off()
    ticks = [0.01, 0.03, 0.1, 0.3, 1, 3]
    axes.set_yticks(ticks, [_time(tick) for tick in ticks])
    axes.tick_params(colors=theme.text)
    axes.grid(axis="y", color=theme.line)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, labelcolor=theme.text)
    _plain(axes, theme, ("left", "bottom"))
    return figure


def _plain(axes: Any, theme: _Theme, sides: tuple[str, ...]) -> None:
    axes.set_facecolor(theme.back)
    for side, spine in axes.spines.items():
        spine.set_visible(side in sides)
        spine.set_color(theme.line)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", facecolor=figure.get_facecolor(), metadata={"Date": None})


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds in (1, 3) else _rounded(seconds)


def _rounded(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
