"""Samba's smbtorture: what of its RPC suites can be asked of a queue manager.

`samba/smbtorture.csv` names them all: those that pass, and why the others are not applicable.
"""

import csv
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.accounts import PASSWORD
from tests.support.served import ServedQueueManager

PROGRAMS = ("smbtorture",)

with (Path(__file__).parent / "samba" / "smbtorture.csv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
PASSING = [row["test"] for row in ROWS if row["expected"] == "pass"]
OTHERS_OF_THE_MAPPER = [
    row["test"] for row in ROWS if row["expected"] != "pass" and "epmapper" in row["test"]
]


def suite_of(test: str) -> str:
    return ".".join(test.split(".")[:2])


@pytest.fixture(scope="module")
def outcomes(server: ServedQueueManager) -> dict[str, str]:
    """What smbtorture says of each test: "success", or another word and the reason."""
    found = {}
    for suite in sorted({suite_of(test) for test in PASSING}):
        options = ["--configfile=/dev/null", "-U", f"alice%{PASSWORD}"]
        done = server.namespace.run(["smbtorture", *options, "ncacn_ip_tcp:127.0.0.1", suite])
        for word, name, reason in re.findall(
            r"^(success|failure|error|skip): (\S+)(?: \[\n(.*))?", done.stdout, re.MULTILINE
        ):
            found[f"rpc.{name}"] = f"{word} {reason}".strip()
    return found


@pytest.mark.parametrize("test", PASSING)
def test_smbtorture_is_content(outcomes: dict[str, str], test: str) -> None:
    assert outcomes[test] == "success"


@pytest.mark.parametrize("test", OTHERS_OF_THE_MAPPER)
def test_what_is_left_out_would_not_pass(outcomes: dict[str, str], test: str) -> None:
    assert outcomes[test].startswith("failure"), "it passes now: say so in smbtorture.csv"


def test_every_rpc_suite_is_listed(server: ServedQueueManager) -> None:
    done = subprocess.run(["smbtorture", "--list"], capture_output=True, text=True, check=True)
    suites = {suite_of(name) for name in done.stdout.split() if name.startswith("rpc.")}
    assert {suite_of(row["test"]) for row in ROWS} == suites


def test_every_test_that_is_left_out_has_its_reason() -> None:
    assert all(row["reason"] for row in ROWS if row["expected"] != "pass")
