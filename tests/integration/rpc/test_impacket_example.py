"""The script of docs/rpc.md that calls a queue manager with impacket's classes."""

import subprocess
import sys
from pathlib import Path

from rpcqm.testing import private_queue_manager

TEXT = (Path(__file__).parents[3] / "docs" / "rpc.md").read_text("utf-8")


def test_an_impacket_script_calls_a_queue_manager_with_classes_from_the_idl() -> None:
    (script,) = [
        block.split("```")[0]
        for block in TEXT.split("```python\n")
        if "impacket_module" in block.split("```")[0]
    ]
    with private_queue_manager() as server:
        _, port = server.endpoint("rpc")
        done = subprocess.run(
            [sys.executable, "-c", script.replace("2103", str(port))],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{port}\n"
