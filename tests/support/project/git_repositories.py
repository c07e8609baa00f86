"""Small repositories of git, for what reads the history of this one."""

import subprocess
from pathlib import Path


class Repository:
    """One in a directory, without any setting of the machine's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        """What a command prints."""
        settings = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        argv = ["git", "-C", str(self.root), *settings, *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, path: str, text: str) -> None:
        """Write a file of the work tree."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def commit(self) -> str:
        """Commit everything; the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a commit")
        return self.git("rev-parse", "HEAD")
