"""Ask the database of known weaknesses about every package that is installed.

Ends with 0 when all of them were looked up and have none, with 1 when some have, and with 2 when
not all could be looked up, which proves nothing.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.support.soak.soak_record import Goal, Part, Record, main_of, options

OWN = "rpcqm"
CLEAN, WEAK, UNKNOWN = 0, 1, 2
COMMAND = (sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off")
PATIENCE = 600.0


def verdict(dependencies: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """The exit status and the sentence for what pip-audit tells of packages."""
    packages = [each for each in dependencies if each["name"] != OWN]
    weak = [
        f"{each['name']} {each['version']} ({weakness['id']})"
        for each in packages
        for weakness in each.get("vulns", ())
    ]
    if weak:
        return WEAK, f"Known weaknesses: {', '.join(weak)}."
    unknown = sum("skip_reason" in each for each in packages)
    if unknown or not packages:
        return UNKNOWN, (
            f"Nothing is proved: {unknown} of {len(packages)} packages could not be looked up in "
            "the database of known weaknesses, which needs the network."
        )
    return CLEAN, f"{len(packages)} packages have no known weaknesses."


def audit(command: Sequence[str] = COMMAND) -> tuple[int, str]:
    """Run pip-audit; the exit status and the sentence."""
    try:
        outcome = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return verdict(json.loads(outcome.stdout)["dependencies"])
    except subprocess.TimeoutExpired:
        why = f"it did not answer within {PATIENCE:.0f} s"
    except ValueError:
        why = (outcome.stderr.strip() or "no answer").splitlines()[-1]
    return UNKNOWN, f"Nothing is proved: the database of known weaknesses cannot be asked: {why}."


def main(words: Sequence[str] | None = None) -> int:
    """Tell the sentence; what was known at an earlier time is never told again."""
    made = options(argparse.ArgumentParser("scripts/soak audit", description=__doc__))
    given = made.parse_args(words)
    given.again = True
    record = Record(made, given, Goal(1))
    status, sentence = audit()
    print(sentence, file=sys.stderr if status else sys.stdout)
    record.keep("all", Part({"questions": 1}, failures=[sentence] if status else []))
    return status


if __name__ == "__main__":
    main_of(main)
