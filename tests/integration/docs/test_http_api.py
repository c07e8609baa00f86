"""The examples of docs/http-api.md work as they stand there, one after the other."""

import re
import subprocess
from pathlib import Path

import pytest

from rpcqm.testing import private_queue_manager

PAGE = Path(__file__).parents[3] / "docs" / "http-api.md"
EXAMPLES = re.findall(r"(?ms)^```curl\n(.*?)^```", PAGE.read_text("utf-8"))


def test_every_example_of_the_page_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(EXAMPLES) >= 8
    monkeypatch.setenv("RPCQM_CONSOLE_LONGEST_WAIT", "1")  # events end when it is over
    with private_queue_manager(("--console-port", "0")) as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        port = running.endpoint("console")[1]
        for example in EXAMPLES:
            command = example.replace("localhost:15680", f"127.0.0.1:{port}")
            command = command.replace("curl ", "curl --fail-with-body --silent --noproxy '*' ", 1)
            done = subprocess.run(
                ["bash", "-c", command], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (example, done.stdout, done.stderr)
            begins = "retry:" if "/events" in example else "{"
            assert done.stdout.startswith(begins), example
