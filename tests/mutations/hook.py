"""Load one module of the product from another source; nothing changes on the disk.

The processes that a test starts do the same: `environment` names a folder whose sitecustomize
installs the hook there.  The product knows nothing of it.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

VARIABLE = "MUTATION_UNDER_TEST"
"""Not RPCQM_…: queue managers of tests are started without such variables."""
ROOT = Path(__file__).parents[2]

SITECUSTOMIZE = """\
from tests.mutations.hook import install_from_environment

install_from_environment()
"""


class MutatedLoader(SourceFileLoader):
    """Loads a module from the given source, as if its file had it."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class MutatedFinder(MetaPathFinder):
    """Finds one module with another text than its file's, before all other finders.

    Without a text, `path` is the file of a changed copy of the module and its data.
    """

    def __init__(self, module: str, path: str, source: str | None) -> None:
        self.module = module
        self.path = path
        self.source = source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        if self.source is None:
            return spec_from_file_location(fullname, self.path)
        loader = MutatedLoader(fullname, self.path, self.source)
        return spec_from_file_location(fullname, self.path, loader=loader)


def install(change: Mapping[str, str]) -> None:
    """Load the module that the change names (module, path, source or none) so from now on."""
    if change["module"] in sys.modules:
        raise RuntimeError(f"{change['module']} was imported before it could be mutated")
    finder = MutatedFinder(change["module"], change["path"], change.get("source"))
    sys.meta_path.insert(0, finder)


def install_from_environment() -> None:
    """What sitecustomize does in a process that a mutated test starts."""
    path = os.environ.get(VARIABLE)
    if path:
        install(json.loads(Path(path).read_text("utf-8")))


def environment(folder: Path, change: Mapping[str, str]) -> dict[str, str]:
    """The variables by which processes started from here are mutated too; fills the folder."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, "utf-8")
    told = folder / "change.json"
    told.write_text(json.dumps(change), "utf-8")
    path = os.pathsep.join(filter(None, (str(folder), str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {VARIABLE: str(told), "PYTHONPATH": path}
