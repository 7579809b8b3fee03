"""Find the modules that features have under a common file name, such as `checks`.

For cold code only: it lists the features' folder.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_FEATURES = "gitgates.features"
_FOLDER_ABS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "features")


def feature_parts(name: str) -> Iterator[ModuleType]:
    """Yield the module `features/FEATURE/NAME.py` of each feature that has one, by feature."""
    for feature in sorted(os.listdir(_FOLDER_ABS)):
        if os.path.isfile(f"{_FOLDER_ABS}/{feature}/{name}.py"):
            module = f"{_FEATURES}.{feature}.{name}"
            __import__(module)
            yield sys.modules[module]
