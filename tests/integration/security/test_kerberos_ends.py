"""What was opened by Kerberos ends with the account, however long its ticket is good (G403)."""

from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.rpc.callers import Fault
from tests.support.rpc.kdc import SERVICE, Kdc
from tests.support.rpc.network_caller import NetworkCaller

kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)


@pytest.fixture
def server(kdc: Kdc) -> Iterator[PrivateQueueManager]:
    configuration = f'[security]\nkeytab = "{kdc.keytab}"\nprincipal = "{SERVICE}"\n'
    with private_queue_manager((), configuration, kdc.environment) as running:
        running.run("user", "add", "alice", "--password-stdin", input=PASSWORD + "\n")
        yield running


def test_an_association_by_kerberos_ends_with_its_account(
    kdc: Kdc, server: PrivateQueueManager
) -> None:
    """Another password ends it, too, although the ticket has nothing to do with that."""
    tickets = kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on("alice"))
    address = server.endpoint("rpc")
    for words in (("user", "password", "alice", "--password-stdin"), ("user", "remove", "alice")):
        with NetworkCaller(address, "remoteread", credentials=tickets) as caller:
            caller.call("R_GetServerPort")
            server.run(*words, input="another pass phrase\n")
            assert caller.ended
    with (
        NetworkCaller(address, "remoteread", credentials=tickets) as caller,
        pytest.raises((Fault, ConnectionError)),
    ):
        caller.call("R_GetServerPort")
