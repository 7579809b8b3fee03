"""The gates of a headless run if the configuration names none."""

from __future__ import annotations

import os

from gitgates.core.errors import ConfigError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.policy import policy_gates
from gitgates.core.types import Config, Gate, Hook
from gitgates.features.headless.outcomes import HOOK

# A file that identifies the language → its gates: name, command, seconds.
LANGUAGES: tuple[tuple[tuple[str, ...], tuple[tuple[str, str, float], ...]], ...] = (
    (("go.mod",), (("Run tests", "go test ./...", 300.0), ("Build", "go build ./...", 120.0))),
    (("package.json",), (("Run tests", "npm test", 300.0),)),
    (
        ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"),
        (("Run tests", "pytest", 300.0),),
    ),
)


def with_default_gates(config: Config, root_abs: str) -> tuple[Config, str]:
    """Return the configuration with gates for the hook `headless`, and a note on their origin.

    If it has none, it gets those of the end of an agent's turn, else those of the language.

    Raises: ConfigError if there are none at all.
    """
    hooks = {hook.name: hook for hook in config.hooks}
    if HOOK in hooks and hooks[HOOK].gates:
        return config, ""
    base = hooks.get(HOOK, Hook(name=HOOK, strategy="collect"))
    others = tuple(hook for hook in config.hooks if hook.name != HOOK)
    stop = hooks.get(HOOK_OF["turn-end"], base)
    if turn_gates := tuple(name for name in stop.gates if name not in policy_gates()):
        hook = base._replace(gates=turn_gates, max_retries=stop.max_retries)
        note = f"the hook {HOOK} has no gates: those of {stop.name} run"
        return config._replace(hooks=(*others, hook)), note
    gates = _of_language(root_abs)
    if not gates:
        raise ConfigError(
            f"{root_abs}: no gates are configured, so nothing would be checked",
            f'List some: [tool.gitgates.hooks.{HOOK}] gates = ["…"]; or start with: gitgates init',
        )
    names = tuple(gate.name for gate in gates)
    hook = base._replace(gates=names)
    configured = tuple(gate for gate in config.gates if gate.name not in names)
    note = f"no gates are configured; defaults: {', '.join(str(gate.command) for gate in gates)}"
    return config._replace(gates=(*configured, *gates), hooks=(*others, hook)), note


def _of_language(root_abs: str) -> tuple[Gate, ...]:
    for files, gates in LANGUAGES:
        if any(os.path.isfile(os.path.join(root_abs, name)) for name in files):
            return tuple(Gate(name=n, command=c, timeout_s=s) for n, c, s in gates)
    return ()
