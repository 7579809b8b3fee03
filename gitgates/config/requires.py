"""The gitgates versions that accept the settings: `requires = ">=0.2,<1"`. Cold.

Versions are numbers with any number of dots: 0.2 is 0.2.0. A suffix of our version, as in 0.3.0rc1,
is not compared.
"""

from __future__ import annotations

import operator
import os
import re
import sys
from shlex import quote

from gitgates import __version__
from gitgates.config.values import BadValue, ValueType
from gitgates.core.errors import ConfigError

_OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBERS = r"\d{1,9}(?:\.\d{1,9})*"
_COMPARISON = rf"\s*(?:{'|'.join(_OPERATORS)})\s*{_NUMBERS}\s*"
_PARTS = re.compile(rf"({'|'.join(_OPERATORS)})({_NUMBERS})")
_ALL = re.compile(rf"{_COMPARISON}(?:,{_COMPARISON})*", re.ASCII)
# A file in the environment of a program → the command that installs another version of it.
_INSTALLERS = {"uv-receipt.toml": "uv tool install", "pipx_metadata.json": "pipx install --force"}


def _parse(value: object) -> str:
    """Return comparisons without spaces."""
    if not isinstance(value, str) or not _ALL.fullmatch(value):
        raise BadValue('version comparisons, such as ">=0.2" or ">=0.2,<1"')
    return "".join(value.split())


REQUIRES = ValueType(_parse, {"type": "string", "pattern": f"^{_COMPARISON}(?:,{_COMPARISON})*$"})


def is_met(requires: str, version: str = __version__) -> bool:
    """Return whether a version meets the requirement."""
    ours = _numbers(version)
    return all(
        _OPERATORS[compare](ours, _numbers(other)) for compare, other in _PARTS.findall(requires)
    )


def _numbers(version: str) -> list[int]:
    match = re.match(_NUMBERS, version, re.ASCII)
    numbers = [int(number) for number in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def refuse_unmet(location: str, value: object) -> None:
    """Raise ConfigError if settings require another version; the parser reports an invalid value.

    Asked before parsing, because the settings may have keys and values that this version does not
    know.
    """
    if isinstance(value, str) and _ALL.fullmatch(value) and not is_met(requires := _parse(value)):
        raise ConfigError(
            f"{location}: gitgates {requires} is required, and this is gitgates {__version__}",
            f"To install it: {install_command(requires)}",
        )


def install_command(requires: str) -> str:
    """Return the command that installs a required version in place of this one."""
    package, python = quote(f"gitgates{requires}"), quote(sys.executable)
    folder_abs = os.path.dirname(sys.executable)
    for name, command in _INSTALLERS.items():
        if os.path.isfile(f"{os.path.dirname(folder_abs)}/{name}"):
            return f"{command} {package}"
    if os.path.exists(f"{folder_abs}/pip"):
        return f"{python} -m pip install {package}"
    return f"uv pip install --python {python} {package}"
