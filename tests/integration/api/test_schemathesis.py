"""Schemathesis drives the whole interface by its description: nothing fails, all is as declared."""

import re
import subprocess
import sys
from pathlib import Path

from rpcqm.testing import private_queue_manager

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
SECONDS = 110
"""It takes 20 on an idle machine."""


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    with private_queue_manager(("--console-port", "0"), "[console]\nlongest_wait = 1\n") as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        host, port = running.endpoint("console")
        tried = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run"),
                f"http://{host}:{port}/api/v1/openapi.json",
                *("--auth", "boss:secret", "--seed", "1", "--max-examples", "3"),
                *("--phases", "fuzzing", "--checks", CHECKS, "--suppress-health-check", "all"),
                *("--generation-database", "none", "--no-color"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        said = tried.stdout
        assert tried.returncode == 0, said[-4000:] + tried.stderr[-2000:]
        tested = re.search(r"Tested: (\d+)", said)
        assert tested is not None
        assert int(tested[1]) > 30
        assert '"level": "error"' not in running.log
