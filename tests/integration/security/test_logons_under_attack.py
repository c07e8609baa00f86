"""Log-ons that prove nothing: old responses, blank names, empty passwords, nobody."""

from typing import Any

import pytest
from impacket import ntlm

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc.security.context import Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.testing import PrivateQueueManager
from tests.integration.security.conftest import PASSWORDS, bodies
from tests.support.rpc.callers import Fault
from tests.support.rpc.impacket_ntlm import ImpacketCredentials
from tests.support.rpc.network_caller import NetworkCaller, RefusedError
from tests.support.rpc.remote_reader import Reader

PASSWORD = PASSWORDS["victim"]


def read_as(queue_manager: PrivateQueueManager, credentials: Credentials, queue: str) -> bytes:
    """The body that a remote reader gets; raises Fault, or RefusedError."""
    address = queue_manager.endpoint("rpc")
    with NetworkCaller(address, "remoteread", credentials=credentials) as caller:
        reader = Reader(caller.caller)
        return reader.receive(reader.open(f"DIRECT=OS:.\\private$\\{queue}"))


def is_refused(queue_manager: PrivateQueueManager, credentials: Credentials, queue: str) -> bool:
    """Whether a log-on gets nowhere, and leaves the queue as it was."""
    with pytest.raises((Fault, RefusedError)) as caught:
        read_as(queue_manager, credentials, queue)
    if isinstance(caught.value, Fault):
        assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED
    return bodies(queue_manager, queue) == [b"secret"]


def test_impackets_ntlm_v2_logs_on(queue_manager: PrivateQueueManager, queue: str) -> None:
    """Without this the refusals below would prove nothing; the victim is slowed by them."""
    credentials = ImpacketCredentials("alice", PASSWORDS["alice"])
    body = read_as(queue_manager, credentials, queue)
    assert body == b"secret"


def test_an_ntlm_v1_response_is_refused(queue_manager: PrivateQueueManager, queue: str) -> None:
    credentials = ImpacketCredentials("victim", PASSWORD, ntlm_v2=False)
    assert is_refused(queue_manager, credentials, queue)


def lan_manager(message: Any, challenge: bytes) -> None:
    """The response of LAN Manager, right for the password, and no other."""
    hashed = ntlm.compute_lmhash(PASSWORD)
    message["lanman"] = ntlm.ntlmssp_DES_encrypt(hashed, challenge)
    message["ntlm"] = b""


def lan_manager_v2(message: Any, challenge: bytes) -> None:
    """LMv2 alone, right for the password."""
    key = ntlm.NTOWFv2("victim", PASSWORD, "")
    message["lanman"] = ntlm.hmac_md5(key, challenge + b"clientch") + b"clientch"
    message["ntlm"] = b""


def ntlm_v1_without_session_security(message: Any, challenge: bytes) -> None:
    """The oldest of NTLM's responses, right for the password."""
    hashed = ntlm.compute_nthash(PASSWORD)
    message["flags"] &= ~ntlm.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    message["ntlm"] = ntlm.ntlmssp_DES_encrypt(hashed, challenge)
    lan_manager_only = ntlm.compute_lmhash(PASSWORD)
    message["lanman"] = ntlm.ntlmssp_DES_encrypt(lan_manager_only, challenge)


@pytest.mark.parametrize("change", [lan_manager, lan_manager_v2, ntlm_v1_without_session_security])
def test_a_response_of_lan_manager_is_refused(
    queue_manager: PrivateQueueManager, queue: str, change: Any
) -> None:
    credentials = ImpacketCredentials("victim", PASSWORD, change=change)
    assert is_refused(queue_manager, credentials, queue)


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param(ImpacketCredentials("", ""), id="anonymous"),
        pytest.param(ImpacketCredentials("", PASSWORD), id="no name"),
        pytest.param(ImpacketCredentials(" ", PASSWORD), id="a blank"),
        pytest.param(ImpacketCredentials("\0", ""), id="a null"),
        pytest.param(ImpacketCredentials("*", PASSWORD), id="a star"),
        pytest.param(ImpacketCredentials("victim", ""), id="no password"),
        pytest.param(ImpacketCredentials("nobody", ""), id="nobody without a password"),
        pytest.param(NtlmCredentials("victim", ""), id="our client, no password"),
        pytest.param(NtlmCredentials("victim", nt_hash=bytes(16)), id="a hash of zeros"),
        pytest.param(SpnegoCredentials((NtlmCredentials("victim", ""),)), id="SPNEGO, no password"),
    ],
)
def test_blank_names_and_empty_passwords_get_nowhere(
    queue_manager: PrivateQueueManager, queue: str, credentials: Credentials
) -> None:
    assert is_refused(queue_manager, credentials, queue)


def without_name(message: Any, challenge: bytes) -> None:
    """Who proved to be the victim takes the name away."""
    message["user_name"] = b""


def without_proof(message: Any, challenge: bytes) -> None:
    """The name stays, as if it were anonymous's."""
    message["ntlm"] = message["lanman"] = b""


def proof_of_zeros(message: Any, challenge: bytes) -> None:
    message["ntlm"] = bytes(len(message["ntlm"]))


@pytest.mark.parametrize("change", [without_name, without_proof, proof_of_zeros])
def test_half_a_log_on_gets_nowhere(
    queue_manager: PrivateQueueManager, queue: str, change: Any
) -> None:
    credentials = ImpacketCredentials("victim", PASSWORD, change=change)
    assert is_refused(queue_manager, credentials, queue)
