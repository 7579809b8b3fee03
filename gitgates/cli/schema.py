"""`gitgates schema`: print the JSON Schema of the configuration."""

from __future__ import annotations

import json

import click

from gitgates import errors
from gitgates.config.jsonschema import get_schema


@click.command("schema")
def command() -> int:
    """Print the JSON Schema (draft-07) of [tool.gitgates] and of gitgates.toml.

    validate-pyproject finds it by itself; give it to an editor as a file.
    """
    click.echo(json.dumps(get_schema(), indent=2, ensure_ascii=False))
    return errors.OK
