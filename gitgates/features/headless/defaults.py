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
    hook, added = hooks.get(HOOK, Hook(name=HOOK, strategy="collect")), list[Gate]()
    stop = hooks.get(HOOK_OF["turn-end"], hook)
    if turn_gates := tuple(name for name in stop.gates if name not in policy_gates()):
        hook = hook._replace(gates=turn_gates, max_retries=stop.max_retries)
        note = f"the hook {HOOK} has no gates: those of {stop.name} run"
    else:
        for files, gates in LANGUAGES:
            if not added and any(os.path.isfile(f"{root_abs}/{name}") for name in files):
                added = [Gate(name=n, command=c, timeout_s=s) for n, c, s in gates]
        hook = hook._replace(gates=tuple(gate.name for gate in added))
        commands = ", ".join(str(gate.command) for gate in added)
        note = f"no gates are configured; defaults: {commands}"
    if not hook.gates:
        raise ConfigError(
            f"{root_abs}: no gates are configured, so nothing would be checked",
            f'List some: [tool.gitgates.hooks.{HOOK}] gates = ["…"]; or start with: gitgates init',
        )
    others = [gate for gate in config.gates if gate.name not in {each.name for each in added}]
    hooks[HOOK] = hook
    return config._replace(gates=(*others, *added), hooks=tuple(hooks.values())), note
