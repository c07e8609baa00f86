"""Runs Samba's raw DCE/RPC protocol suite against the server on port 135 of this host.

It needs the system's Python with python3-samba, and SERVER, DOMAIN, REALM, USERNAME, PASSWORD and
SMB_CONF_PATH in its environment. Arguments are names of tests, or --list, which prints them all.
One line of JSON is printed for each test: its name, its outcome, and why it did not pass.

The suite waits after each fragment of a long request to see that nothing is answered: 10 ms, or
the seconds in WAIT.
"""

import json
import os
import sys
import traceback
import unittest
from typing import Any

from samba.tests.dcerpc.raw_protocol import TestDCERPC_BIND as Suite

_recv_raw = Suite.recv_raw


def recv_raw(suite: Any, hexdump: bool | None = None, timeout: float | None = None) -> Any:
    if timeout is not None:
        timeout = float(os.environ.get("WAIT", timeout))
    return _recv_raw(suite, hexdump=hexdump, timeout=timeout)


class Lines(unittest.TestResult):
    """Prints each outcome as a line of JSON."""

    def tell(self, test: unittest.TestCase, outcome: str, reason: str = "") -> None:
        name = test.id().rpartition(".")[2]
        print(json.dumps({"test": name, "outcome": outcome, "reason": reason}), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.tell(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.tell(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.tell(test, "failed", "".join(traceback.format_exception(*err)))

    addError = addFailure


def main(names: list[str]) -> None:
    if names == ["--list"]:
        print("\n".join(unittest.TestLoader().getTestCaseNames(Suite)))
    else:
        Suite.recv_raw = recv_raw
        unittest.TestSuite(Suite(name) for name in names).run(Lines())


if __name__ == "__main__":
    main(sys.argv[1:])
