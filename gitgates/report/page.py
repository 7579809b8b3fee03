"""Pages of HTML, and a run as one of them. Cold.

They need nothing else: no script, no network; light and dark. The template engine escapes all that
gitgates has not written, and invisible characters are dropped. If something still gets through, the
page's policy (CSP) lets no script run and loads nothing.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from gitgates.core.clean import plain, plain_line
from gitgates.report.result import attempts_made, details, turn_cost

TONES = {"passed": "good", "fixed": "good", "warned": "odd"}  # of outcomes; any other: bad
_GATE_TONES = {
    "passed": "good",
    "skipped": "soft",
    "not-run": "soft",
    "not-started": "odd",
    "unchecked": "odd",
    "flaky": "odd",
}


def render(name: str, **values: Any) -> str:  # noqa: ANN401 - whatever its template asks for
    """Return a page from its template, a file of the package, which extends `base.html.j2`."""
    import jinja2  # only pages need it

    package = resources.files("gitgates")
    loader = jinja2.FunctionLoader(lambda each: package.joinpath(each).read_text("utf-8"))
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, loader=loader)
    return environment.get_template(name).render(**values)


def page(document: dict[str, Any], metrics: tuple[dict[str, Any], ...] = ()) -> str:
    """Return the HTML of a `result.json`, which must be sound.

    `metrics`: `name` and `values` (numbers, oldest first) of what is drawn over time.
    """
    cycle, headless = document["quality_gates"], document.get("headless") or {}
    turns = headless.get("turns") or []
    attempts = [_attempt(attempt, turns) for attempt in attempts_made(document)]
    longest = max(
        (sum(part["seconds"] for part in attempt["parts"]) for attempt in attempts), default=0
    )
    for part in (part for attempt in attempts for part in attempt["parts"]):
        part["percent"] = 100 * part["seconds"] / (longest or 1)
    status = headless.get("status") or cycle["final_status"]
    return render(
        "report/page.html.j2",
        title=f"gitgates {document['hook']}: {status}",
        outcome=plain_line(headless.get("outcome") or document["outcome"], 0),
        tone=TONES.get(document["outcome"], "bad") if status == "passed" else "bad",
        facts=_facts(document, headless, turns),
        task=plain(headless.get("task", "")).strip(),
        attempts=attempts,
        later=_turns([turn for turn in turns if turn["attempt"] > len(attempts)]),
        metrics=[series(metric) for metric in metrics if metric["values"]],
    )


def _facts(
    document: dict[str, Any], headless: dict[str, Any], turns: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    cycle = document["quality_gates"]
    tokens = [turn["tokens"] for turn in turns if turn.get("tokens") is not None]
    costs = [turn["cost_usd"] for turn in turns if turn.get("cost_usd") is not None]
    facts = [
        ("Run", document["execution_id"]),
        ("Client", headless.get("agent", "")),
        ("Attempts", f"{len(attempts_made(document))} of {cycle['max_retries'] + 1} allowed"),
        ("Gates", f"{cycle['total_duration_seconds']:.1f} seconds"),
        ("Agent's time", f"{sum(turn['seconds'] for turn in turns):.1f} seconds" if turns else ""),
        ("Tokens", f"{sum(tokens):,}" if tokens else ""),
        ("Cost", f"{sum(costs):.4f} USD" if costs else ""),
        ("Commit", headless.get("commit", "")),
        ("Kept as", headless.get("failed_ref", "")),
        ("Working tree", "as it was before the run" if headless.get("rolled_back") else ""),
        *(("Note", note) for note in headless.get("notes") or ()),
    ]
    return [(name, plain(str(value))) for name, value in facts if value]


def _attempt(attempt: dict[str, Any], turns: list[dict[str, Any]]) -> dict[str, Any]:
    attempt_turns = [turn for turn in turns if turn["attempt"] == attempt["attempt"]]
    parts = [
        {"label": f"agent: {turn['seconds']:.1f} s", "seconds": turn["seconds"], "tone": "work"}
        for turn in attempt_turns
    ]
    gates = [_gate(result) for result in attempt["results"]]
    parts += [
        {
            "label": f"{gate['name']}: {gate['ended']}, {gate['seconds']} s",
            "seconds": result["duration_seconds"],
            "tone": gate["tone"],
        }
        for gate, result in zip(gates, attempt["results"], strict=True)
    ]
    return {
        "number": attempt["attempt"],
        "timestamp": plain_line(attempt["timestamp"], 0),
        "outcome": attempt["verdict"],
        "tone": TONES.get(attempt["verdict"], "bad"),
        "reason": plain_line(attempt["reason"], 0),
        "turns": _turns(attempt_turns),
        "gates": gates,
        "parts": parts,
        "spoken": "; ".join(str(part["label"]) for part in parts) or "nothing ran",
        "notes": [plain_line(note, 0) for note in attempt.get("notes", [])],
    }


def _turns(turns: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "used": turn_cost(turn),
            "text": plain(turn.get("text", "")).strip(),
            "error": plain(turn.get("error", "")).strip(),
        }
        for turn in turns
    ]


def _gate(result: dict[str, Any]) -> dict[str, Any]:
    more = ", ".join(details(result))
    return {
        "name": plain_line(result["name"], 0),
        "ended": plain_line(f"{result['status']}: {more}".removesuffix(": "), 0),
        "tone": _GATE_TONES.get(result["status"], "bad"),
        "passed": result["passed"],
        "exit": str(result.get("exit_code", "")),
        "seconds": f"{result['duration_seconds']:.1f}",
        "output": plain(result["output"]).strip("\n"),
    }


def series(metric: dict[str, Any]) -> dict[str, str]:
    """Return the points of a line of a hundred by twenty, and what it shows in words."""
    values = metric["values"]
    low, high = min(values), max(values)
    step = 100 / max(len(values) - 1, 1)
    points = [
        f"{number * step:.2f},{19 - 18 * (value - low) / ((high - low) or 1):.2f}"
        for number, value in enumerate(values)
    ]
    first, last, least, most = (f"{value:.12g}" for value in (values[0], values[-1], low, high))
    return {
        "name": plain_line(metric["name"], 0),
        "points": " ".join(points if len(points) > 1 else [points[0], "100,19"]),
        "spoken": f"{len(values)} runs: from {first} to {last}, least {least}, most {most}",
    }
