"""node-dcom, an implementation of DCOM for Node, uses a queue by opnums, with NTLMv2."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rpcqm.base.hresult import HResult
from tests.support.accounts import PASSWORD
from tests.support.network.namespace import Namespace
from tests.support.served import ServedQueueManager

PROGRAMS = ("node",)
CONFIGURATION = 'name = "mailhost"\n[dcom]\nenabled = true\nminimum_level = "connect"\n'
PLACE = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def node(require: Callable[..., None]) -> list[str]:
    require(*PROGRAMS)
    if not (PLACE / "node_modules").exists():
        pytest.skip("node-dcom is not installed (scripts/install-peers)")
    return ["node", "--openssl-legacy-provider", str(PLACE / "com.js"), "127.0.0.1"]


def test_node_reads_and_changes_a_queue_by_opnums(
    node: list[str], namespace: Namespace, server: ServedQueueManager
) -> None:
    """Its object is activated by IActivation; its switches of interfaces carry empty tokens."""
    server.command("queue", "create", "seen", "--label", "from the command line")
    server.command("queue", "acl", "grant", "seen", "alice", "full")
    done = namespace.run([*node, "MAILHOST", "alice", r".\private$\seen"], input=PASSWORD)
    assert done.returncode == 0, done.stdout + done.stderr + server.log
    assert done.stdout.splitlines() == [
        r"path=mailhost\private$\seen",
        "label=from the command line",
        "quota=262144",
        f"error={HResult.MQ_ERROR_QUEUE_NOT_FOUND:08x}",
    ]
    assert "changed by Node" in server.command("queue", "show", "seen")
