"""Pages of HTML that need nothing else: no script, no network; light and dark. Cold.

The template engine escapes everything that we did not write, and drops invisible characters. If
something still gets through, the page's policy (CSP) lets no script run and loads nothing.
"""

from __future__ import annotations

from importlib import resources
from typing import Any


def render(name: str, **values: Any) -> str:  # noqa: ANN401 - whatever its template asks for
    """Return a page from its template, a file of the package, which extends `base.html.j2`."""
    import jinja2  # only pages need it

    package = resources.files("gitgates")
    loader = jinja2.FunctionLoader(lambda each: package.joinpath(each).read_text("utf-8"))
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, loader=loader)
    return environment.get_template(name).render(**values)
