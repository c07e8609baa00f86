"""Run tests where `rpcqm` has no room `fast`: everything else works the same, only slower.

Usage: python -m tests.support.project.without_fast [PYTEST ARGUMENT…]

It is a folder of links to all that tests need but that room, and so in each process that they
start. Without arguments these are the tests of the store, of the queue manager and of RPC;
`scripts/soak without-fast` runs all.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("tests/unit/store", "tests/unit/qm", "tests/integration/rpc")
_REFUSAL = 'raise ModuleNotFoundError("No module named {0!r}", name="{0}")\n'.format("rpcqm.fast")
"""What is in the place of the room: an installation to be edited would find it where it is."""
_TRIES = "import rpcqm.service.speed, rpcqm.fast"
_OWN = ("var", "rpcqm", "__pycache__")


@contextmanager
def tree_without_fast() -> Iterator[Path]:
    """The place of the links."""
    with tempfile.TemporaryDirectory(prefix="rpcqm-without-fast-") as folder:
        place = Path(folder)
        (place / "rpcqm").mkdir()
        for each in ROOT.iterdir():
            if each.name not in _OWN and not each.name.startswith("."):
                (place / each.name).symlink_to(each)
        for each in (ROOT / "rpcqm").iterdir():
            if each.name not in ("fast", "__pycache__"):
                (place / "rpcqm" / each.name).symlink_to(each)
        (place / "rpcqm" / "fast.py").write_text(_REFUSAL)
        yield place


def variables(place: Path) -> Mapping[str, str]:
    """The environment of processes that are to load the product from there."""
    path = os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH", ""))))
    return os.environ | {"PYTHONPATH": path, "RPCQM_SHADOW": ""}


def main(words: Sequence[str]) -> int:
    """Run pytest there; its status."""
    with tree_without_fast() as place:
        environment = variables(place)
        tried = subprocess.run(
            [sys.executable, "-c", _TRIES], cwd=place, env=environment, capture_output=True
        )
        assert b"No module named 'rpcqm.fast'" in tried.stderr, "the room is there"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(words or FOLDERS)]
        return subprocess.run(command, cwd=place, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
