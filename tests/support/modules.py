"""Modules of a test in front of those that a process would load otherwise."""

import os
from pathlib import Path


def modules_of(folder: Path) -> dict[str, str]:
    """The environment for it; what else is in the way stays there, for example a mutation."""
    others = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), others)))}
