"""Run the tests of the pipeline with the oldest Spark and Arrow that setup.cfg allows, and with
the newest, which are those of requirements.lock.

Versions other than those that are installed come into a folder below var/spark-versions.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version

from packaging.version import Version

from tests.support.project.lock_file import LOCK, pinned, requirements
from tests.support.soak.pytest_soak import ran
from tests.support.soak.soak_record import ROOT, Goal, Part, Record, options, run_parts

PACKAGES = ("pyspark", "pyarrow")
PLACE = ROOT / "var" / "spark-versions"
TESTS = "tests/integration/pipeline"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak spark-versions", description=__doc__)
    made.add_argument("--tests", default=TESTS, help="what is run (%(default)s)")
    return options(made)


def oldest() -> dict[str, str]:
    """The versions from which the extra `spark` allows them."""
    lowest = {
        each.name: bound.version
        for each in requirements()["spark"]
        for bound in each.specifier
        if bound.operator == ">="
    }
    return {name: lowest[name] for name in PACKAGES}


def newest() -> dict[str, str]:
    """Those of the lock file."""
    return {name: pinned(LOCK.read_text("utf-8"))[name] for name in PACKAGES}


def named(versions: dict[str, str]) -> str:
    """`pyspark 4.2, pyarrow 18`."""
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def variables(versions: dict[str, str]) -> dict[str, str]:
    """What makes Python find these versions, which are installed beside the others if need be."""
    if all(Version(version(name)) == Version(number) for name, number in versions.items()):
        return {}
    target = PLACE / named(versions).replace(", ", "-").replace(" ", "-")
    if not (target / "done").exists():
        print(f"installing {named(versions)} (some minutes)", flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--upgrade", "--target", str(target)]
        command += [f"{name}=={number}" for name, number in versions.items()]
        subprocess.run(command, check=True)
        (target / "done").touch()
    return {"PYTHONPATH": str(target)}


def tried(versions: dict[str, str], tests: str) -> Part:
    """What came of the tests with the versions."""
    part = ran([tests], variables(versions))
    part.failures = [f"{named(versions)}: {failure}" for failure in part.failures]
    return part


def main(words: Sequence[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(words)
    parts = {named(versions): versions for versions in (oldest(), newest())}
    record = Record(made, given, Goal(len(parts)))
    return run_parts(record, parts, lambda name: tried(parts[name], given.tests))
