"""The file of versions that CI tested, requirements.lock: constraints for pip.

python -m tests.support.project.lock_file extras       prints the extras of setup.cfg for pip
python -m tests.support.project.lock_file write REPORT writes the file from a report of pip
python -m tests.support.project.lock_file age          prints a sentence if the file is too old

Its first line has the day and the Python that it was made with. A package that only extras need has
them behind it, by which scripts/setup counts.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from datetime import date
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements.lock"
OWN = "rpcqm"
NOT_PINNED = {OWN, "pip"}
"""rpcqm itself, and what installs it: whoever upgrades pip may."""
KEPT_FOR = 30
"""Days after which CI asks for a newer file."""


Packages = dict[str, dict[str, Any]]
"""The metadata of packages by name."""


def requirements(setup: Path = ROOT / "setup.cfg") -> dict[str, list[Requirement]]:
    """What setup.cfg asks for, by extra; what rpcqm itself needs has the empty name."""
    config = ConfigParser()
    config.read(setup)
    lists = {"": config["options"]["install_requires"], **config["options.extras_require"]}
    return {
        extra: [Requirement(line) for line in lines.split("\n") if line]
        for extra, lines in lists.items()
    }


def pinned(text: str) -> dict[str, str]:
    """The version of each package in a lock file, by the name that pip compares."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    pairs = [line.split("==") for line in lines if line]
    return {canonicalize_name(name): version for name, version in pairs}


def written(report: dict[str, Any], day: date) -> str:
    """The text of the file for a report of pip with all extras."""
    packages: Packages = {
        canonicalize_name(each["metadata"]["name"]): each["metadata"] for each in report["install"]
    }
    extras = [extra for extra in requirements() if extra]
    own = needed(packages, "")
    users = {extra: needed(packages, extra) for extra in extras}
    python = ".".join(report["environment"]["python_full_version"].split(".")[:2])
    lines = [f"# {day.isoformat()} Python {python}"]
    lines.append("# The versions that CI tests, for scripts/setup. Written by scripts/lock.")
    for name in sorted(set(packages) - NOT_PINNED):
        behind = ", ".join(extra for extra in extras if name in users[extra])
        line = f"{name}=={packages[name]['version']}"
        lines.append(line if name in own else f"{line}  # {behind}")
    return "\n".join(lines) + "\n"


def needed(packages: Packages, extra: str) -> set[str]:
    """The packages that rpcqm needs with an extra, through others too."""
    found: set[tuple[str, str]] = set()
    waiting = [(OWN, ""), (OWN, extra)]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += asked_for(packages[each[0]], each[1])
    return {name for name, _ in found}


def asked_for(metadata: dict[str, Any], extra: str) -> Iterator[tuple[str, str]]:
    """What one package asks for with an extra of it: names, each once for every extra of theirs."""
    for line in metadata.get("requires_dist", ()):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            for wanted in ["", *requirement.extras]:
                yield canonicalize_name(requirement.name), wanted


def changes(before: str, after: str) -> str:
    """One sentence: what is other in a newer file."""
    old, new = pinned(before), pinned(after)
    lines = [
        f"{name} {old.get(name, '(new)')} → {new.get(name, '(gone)')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    return (
        f"{len(new)} packages; " + (", ".join(lines) if lines else "no version has changed") + "."
    )


def reminder(text: str, today: date) -> str:
    """What CI says of a file that is too old; nothing of another."""
    days = (today - date.fromisoformat(text.split()[1])).days
    if days <= KEPT_FOR:
        return ""
    return (
        f"requirements.lock is {days} days old: scripts/lock writes it anew with the newest "
        "versions that setup.cfg allows."
    )


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands above."""
    match list(arguments):
        case ["extras"]:
            print(",".join(extra for extra in requirements() if extra))
        case ["write", report]:
            text = written(json.loads(Path(report).read_text("utf-8")), date.today())
            before = LOCK.read_text("utf-8") if LOCK.exists() else ""
            LOCK.write_text(text, "utf-8")
            print(f"requirements.lock: {changes(before, text)}")
        case ["age"]:
            if sentence := reminder(LOCK.read_text("utf-8"), date.today()):
                print(sentence)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
