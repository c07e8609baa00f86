"""impacket uses objects signed and sealed, by NTLM alone and by NTLM in SPNEGO.

Its RPC negotiates Kerberos only: test_kerberos_objects.py. NTLM is negotiated here, by impacket's
classes of both in its own bind.
"""

from collections.abc import Iterator

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    DCERPCException,
)

from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.dcom_client import served
from tests.support.dcom.dcom_impacket import connected
from tests.support.dcom.impacket_walker import Walker, Way
from tests.support.rpc.impacket_spnego import NTLM, SPNEGO, negotiate_ntlm, sent_trailers

INTEGRITY, PRIVACY = RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, RPC_C_AUTHN_LEVEL_PKT_PRIVACY


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served() as running:
        yield running


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("level", [INTEGRITY, PRIVACY])
@pytest.mark.parametrize("negotiated", [False, True], ids=["NTLM", "SPNEGO"])
def test_objects_are_called_signed_and_sealed(
    server: PrivateQueueManager,
    negotiated: bool,
    level: int,
    way: Way,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By itself impacket only signs calls of objects, because the server does not ask for more."""
    monkeypatch.setattr(dcomrt.CLASS_INSTANCE, "get_auth_level", lambda _: level)
    sent = negotiate_ntlm(monkeypatch) if negotiated else sent_trailers(monkeypatch)
    with connected(server.endpoint("epm")[1], level=level) as connection:
        walker = Walker(connection, way)
        message = walker.message()
        walker.put(message, "Label", "protected")
        assert walker.get(message, "Label") == "protected"
    assert sent == {(SPNEGO if negotiated else NTLM, level)}


def test_negotiated_ntlm_of_who_does_not_know_the_password_is_refused(
    server: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    negotiate_ntlm(monkeypatch)
    with (
        connected(server.endpoint("epm")[1], password="wrong") as connection,
        pytest.raises(DCERPCException, match="access_denied"),
    ):
        Walker(connection, Way.OPNUMS).message()
