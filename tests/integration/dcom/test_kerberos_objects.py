"""Objects are made and called by Kerberos and SPNEGO: our client and impacket's."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, RPC_C_AUTHN_LEVEL_PKT_PRIVACY

from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import PKT_INTEGRITY, PKT_PRIVACY
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.testing import PrivateQueueManager
from tests.support.accounts import PASSWORD
from tests.support.dcom.dcom_client import ENABLED, DcomClient, served
from tests.support.dcom.dcom_impacket import connected
from tests.support.dcom.impacket_walker import Walker, Way
from tests.support.rpc.impacket_spnego import sent_trailers
from tests.support.rpc.kdc import HOST, REALM, SERVICE, Kdc

kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
NEWEST = "IMSMQMessage4"
NTLM, SPNEGO, KERBEROS = 10, 9, 16


@pytest.fixture(scope="module")
def server(kdc: Kdc) -> Iterator[PrivateQueueManager]:
    security = f'[security]\nkeytab = "{kdc.keytab}"\nprincipal = "{SERVICE}"\n'
    configuration = ENABLED.replace("true", f'true\nadvertise = ["{HOST}"]', 1) + security
    with served(configuration, environment=kdc.environment) as running:
        yield running


def used(client: DcomClient) -> list[int]:
    """Make and use an object; the ways to log on that the reply names."""
    made = client.create(MSMQ_MESSAGE, NEWEST)
    client.call(made, "put_Label", "a label")
    assert client.call(made, "get_Label") == "a label"
    return [each.authn_svc for each in client.bindings.securities]


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY])
def test_kerberos_and_spnego_serve_our_client(
    kdc: Kdc, server: PrivateQueueManager, level: AuthenticationLevel
) -> None:
    tickets = kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on("alice"))
    negotiated = SpnegoCredentials((tickets, NtlmCredentials("alice", PASSWORD)))
    for credentials in (tickets, negotiated):
        with DcomClient(server.endpoint("epm"), credentials, level) as client:
            assert used(client) == [NTLM, SPNEGO, KERBEROS]


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("level", [RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, RPC_C_AUTHN_LEVEL_PKT_PRIVACY])
def test_negotiated_kerberos_serves_impacket(
    kdc: Kdc,
    server: PrivateQueueManager,
    level: int,
    way: Way,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By itself impacket seals calls of objects, where it is asked to sign them, too."""
    monkeypatch.setenv("KRB5CCNAME", kdc.service_ticket("alice").removeprefix("FILE:"))
    monkeypatch.setattr(dcomrt.CLASS_INSTANCE, "get_auth_level", lambda _: level)
    sent = sent_trailers(monkeypatch)
    options: dict[str, Any] = {"domain": REALM, "doKerberos": True, "remoteHost": "127.0.0.1"}
    with connected(
        server.endpoint("epm")[1], password="", level=level, target=HOST, **options
    ) as connection:
        walker = Walker(connection, way)
        message = walker.message()
        walker.put(message, "Label", "a label")
        assert walker.get(message, "Label") == "a label"
    assert sent == {(SPNEGO, level)}
