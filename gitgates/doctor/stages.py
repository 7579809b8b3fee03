"""Whether the pre-commit framework is installed for our stages in it. Pure."""

from __future__ import annotations

from gitgates.doctor.finding import Finding
from gitgates.doctor.framework import FILE
from gitgates.install.managers import FRAMEWORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.framework import Framework
    from gitgates.doctor.hookfile import HookFile

_NOT_FIRED = "manual"  # a stage that git never fires, so that there is nothing to install


def check_stages(framework: Framework, files: Mapping[str, HookFile]) -> list[Finding]:
    """Return stages of ours that are not installed. `files` is each stage's hook as it is."""
    wrong = Finding(severity="problem", check="stages", where=FILE, what="")
    if framework.broken:
        return [wrong._replace(what=f"cannot be read: {framework.broken}", mend="mend its YAML")]
    stages = [stage for stage in framework.our_stages if stage != _NOT_FIRED]
    found = []
    for stage in stages:
        if not _is_frameworks(files[stage]) and files[stage].kind != "shim":
            what = f"has gitgates-{stage}, but pre-commit is not installed for {stage}"
            mend = f"pre-commit install --hook-type {stage}"
            found.append(wrong._replace(what=what, mend=mend))
    left_out = [stage for stage in stages if stage not in framework.install_types]
    if left_out:
        what = f"whoever runs `pre-commit install` does not get {', '.join(left_out)}"
        types = ", ".join(dict.fromkeys([*framework.install_types, *left_out]))
        mend = f"add to it: default_install_hook_types: [{types}]"
        found.append(wrong._replace(severity="note", what=what, mend=mend))
    return found


def _is_frameworks(file: HookFile) -> bool:
    return file.manager is not None and file.manager.name in FRAMEWORK
