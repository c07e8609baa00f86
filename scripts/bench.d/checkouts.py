"""Other commits beside this one: what is checked out of them, and how their servers are started."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGE, INTERFACES = Path("rpcqm"), Path("idl")
MODULES = ("rpcqm", "rpcqm.idl", "rpcqm.service", "rpcqm.store.store", "rpcqm.codec.interface")
"""What is asked where it comes from: the packages, the IDL, and some that a server needs."""
_ASK = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    print(name, module.__file__ or list(module.__path__)[0])
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The files of a commit in a directory of their own."""

    commit: str
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """What lets Python, with all that is installed here, take rpcqm from there.

        The directory in which Python is started does not count, and hashes are the same in every
        process, so that no order of a set differs from one start to the next.
        """
        own = {"PYTHONPATH": str(self.root), "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0"}
        return dict(os.environ) | own

    def prove(self) -> None:
        """RuntimeError when something of rpcqm would come from elsewhere."""
        argv = [sys.executable, "-c", _ASK, *MODULES]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"rpcqm of {self.commit}: {done.stderr.strip()[-300:]}")
        for line in done.stdout.splitlines():
            name, _, path = line.partition(" ")
            if not Path(path).resolve().is_relative_to(self.root.resolve()):
                raise RuntimeError(f"{name} of {self.commit} comes from elsewhere: {path}")


def git(root: Path, *words: str) -> str:
    """What a command of git prints; RuntimeError with what it says when it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def present(root: Path) -> str:
    """A commit of what is checked out, with what was changed and not committed yet.

    No branch has that commit. RuntimeError when git does not know a file of the package.
    """
    unknown = git(root, "ls-files", "--others", "--exclude-standard", str(PACKAGE), str(INTERFACES))
    if unknown:
        raise RuntimeError(f"git does not know {unknown.splitlines()[0]}: `git add` it first")
    return git(root, "stash", "create") or git(root, "rev-parse", "HEAD")


@contextmanager
def checked_out(root: Path, commit: str, where: Path) -> Iterator[Checkout]:
    """The files of a commit in a work tree that is removed afterwards.

    The IDL is a package of rpcqm that lies beside it; a link puts it where Python looks first.
    """
    full = git(root, "rev-parse", "--verify", f"{commit}^{{commit}}")
    where.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=where) as name:
        tree = Path(name) / "tree"
        git(root, "worktree", "add", "--quiet", "--detach", str(tree), full)
        try:
            if not (tree / PACKAGE / INTERFACES).exists():
                (tree / PACKAGE / INTERFACES).symlink_to(tree / INTERFACES)
            made = Checkout(full[:12], tree)
            made.prove()
            yield made
        finally:
            git(root, "worktree", "remove", "--force", str(tree))
