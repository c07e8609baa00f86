"""Clients that others' generators make of the OpenAPI send, receive with a lease, and complete."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager

PLACE = Path(__file__).parent / "node"
PATIENCE = 300.0
SENT = {
    "label": "made",
    "priority": 5,
    "body": "one bicycle",
    "left": 0,
    "refused": "MQ_ERROR_QUEUE_NOT_FOUND",
}

PYTHON = """
import base64, io, json, sys
from made.api.leases import complete_lease
from made.api.queues import receive_messages, send_message, show_queue
from made.client import AuthenticatedClient
from made.types import File

address, token = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=token, httpx_args={"trust_env": False})
body = File(payload=io.BytesIO(b"one bicycle"))
sent = send_message.sync(
    "orders", client=client, body=body, rpcqm_label="made", rpcqm_priority=5,
    rpcqm_acknowledgements="arrival,receive", idempotency_key="made-1",
)
again = send_message.sync(
    "orders", client=client, body=File(payload=io.BytesIO(b"one bicycle")), rpcqm_label="made",
    rpcqm_priority=5, rpcqm_acknowledgements="arrival,receive", idempotency_key="made-1",
)
(message,) = receive_messages.sync("orders", client=client, wait=1, max_=10, lease=30).messages
assert message.id == sent.id == again.id
done = complete_lease.sync_detailed(message.lease, client=client)
assert done.status_code == 204, done
left = receive_messages.sync("orders", client=client).messages
refused = show_queue.sync("none", client=client)
print(json.dumps({
    "label": message.label, "priority": message.priority,
    "body": base64.b64decode(message.body_base64).decode(), "left": len(left),
    "refused": refused.code,
}))
"""


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as served:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        served.run(*words, input="secret\n")
        served.run("queue", "create", "orders")
        served.run("queue", "acl", "grant", "orders", "boss", "full")
        yield served


@pytest.fixture
def address(running: PrivateQueueManager) -> str:
    return f"http://127.0.0.1:{running.endpoint('console')[1]}"


@pytest.fixture
def description(address: str, tmp_path: Path) -> Path:
    """The OpenAPI as it is served, in a file."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    path = tmp_path / "openapi.json"
    path.write_bytes(opener.open(f"{address}/api/v1/openapi.json").read())
    return path


def token_of(running: PrivateQueueManager, name: str) -> str:
    return running.run("token", "create", name, "--account", "boss").stdout.strip()


def ran(command: list[str], cwd: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_client_made_for_python(
    running: PrivateQueueManager, address: str, description: Path
) -> None:
    place = description.parent
    program = "from openapi_python_client.cli import app; app()"
    words = ["generate", "--path", description.name, "--output-path", "made", "--meta", "none"]
    told = ran([sys.executable, "-c", program, *words, "--fail-on-warning"], place)
    assert "WARNING" not in told
    (place / "use.py").write_text(PYTHON, "utf-8")
    printed = ran([sys.executable, "use.py", address, token_of(running, "python")], place)
    assert json.loads(printed) == SENT


def test_a_client_made_for_typescript(
    running: PrivateQueueManager,
    address: str,
    description: Path,
    require: Callable[..., None],
) -> None:
    require("node")
    if not (PLACE / "node_modules").exists():
        pytest.skip("openapi-fetch is not installed (npm, by scripts/install-peers)")
    place = description.parent
    for name in ("client.ts", "tsconfig.json", "package.json"):
        shutil.copy(PLACE / name, place)
    (place / "node_modules").symlink_to(PLACE / "node_modules")
    programs = PLACE / "node_modules" / ".bin"
    ran([str(programs / "openapi-typescript"), description.name, "-o", "made.d.ts"], place)
    ran([str(programs / "tsc"), "-p", "."], place)
    printed = ran(["node", "client.js", address, token_of(running, "typescript")], place)
    assert json.loads(printed) == SENT
