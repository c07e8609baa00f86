"""What somebody in the middle, or a caller that lies, does to a sealed association."""

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.pdu import TRAILER_LENGTH
from rpcqm.rpc.security.context import PKT_PRIVACY, Handshake, SecurityContext
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager
from tests.integration.security.conftest import PASSWORDS, Connect, bodies
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import Reader

SIGNATURE = 16
AUTH_LEVEL = -SIGNATURE - TRAILER_LENGTH + 1
CONTEXT_ID = -SIGNATURE - 4


@pytest.fixture
def alice(connect: Connect) -> NetworkCaller:
    """Alice, who has logged on and sealed one call."""
    caller = connect("remoteread", user="alice")
    caller.call("R_GetServerPort")
    return caller


@pytest.fixture
def purge(alice: NetworkCaller, queue: str) -> bytes:
    """The octets of a sealed R_PurgeQueue that alice has not sent."""
    handle = Reader(alice.caller).open(f"DIRECT=OS:.\\private$\\{queue}")
    _, octets = alice.made("R_PurgeQueue", phContext=handle)
    return octets


def is_refused(caller: NetworkCaller, octets: bytes) -> FaultStatus:
    """The status of the fault after which the server hangs up."""
    answer = caller.answer_to(octets)
    assert isinstance(answer, pdu.Fault), answer
    assert caller.ended
    return FaultStatus(answer.status)


def stripped(octets: bytes) -> bytes:
    """The same request without a trailer, in clear for all that the server knows."""
    whole = bytearray(octets[: -SIGNATURE - TRAILER_LENGTH])
    whole[8:12] = len(whole).to_bytes(2, "little") + bytes(2)
    return bytes(whole)


def test_what_alice_sends_unchanged_is_served(
    alice: NetworkCaller, purge: bytes, queue_manager: PrivateQueueManager, queue: str
) -> None:
    """Without this the refusals below would prove nothing."""
    assert isinstance(alice.answer_to(purge), pdu.Response)
    assert bodies(queue_manager, queue) == []


def test_a_plain_request_on_a_sealed_association_ends_it(
    alice: NetworkCaller, purge: bytes, queue_manager: PrivateQueueManager, queue: str
) -> None:
    assert is_refused(alice, stripped(purge)) is FaultStatus.RPC_S_ACCESS_DENIED
    assert bodies(queue_manager, queue) == [b"secret"]


@pytest.mark.parametrize(
    "level", [level for level in AuthenticationLevel if level < PKT_PRIVACY], ids=str
)
def test_a_lowered_level_in_the_trailer_ends_the_association(
    alice: NetworkCaller,
    purge: bytes,
    level: AuthenticationLevel,
    queue_manager: PrivateQueueManager,
    queue: str,
) -> None:
    octets = bytearray(purge)
    octets[AUTH_LEVEL] = level
    assert is_refused(alice, bytes(octets)) is FaultStatus.RPC_S_ACCESS_DENIED
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_replayed_pdu_ends_the_association(alice: NetworkCaller) -> None:
    _, octets = alice.made("R_GetServerPort")
    assert isinstance(alice.answer_to(octets), pdu.Response)
    assert is_refused(alice, octets) is FaultStatus.RPC_S_SEC_PKG_ERROR


def test_a_pdu_of_another_association_is_worth_nothing(
    alice: NetworkCaller, purge: bytes, connect: Connect
) -> None:
    other = connect("remoteread", user="alice", group_id=alice.group_id)
    assert other.group_id == alice.group_id
    assert is_refused(other, purge) is FaultStatus.RPC_S_SEC_PKG_ERROR


@pytest.mark.parametrize("filling", [b"\0", b"\xff"])
def test_a_signature_of_zeros_ends_the_association(
    alice: NetworkCaller,
    purge: bytes,
    filling: bytes,
    queue_manager: PrivateQueueManager,
    queue: str,
) -> None:
    octets = purge[:-SIGNATURE] + filling * SIGNATURE
    assert is_refused(alice, octets) is FaultStatus.RPC_S_SEC_PKG_ERROR
    assert bodies(queue_manager, queue) == [b"secret"]


def test_the_token_that_stands_for_no_signature_ends_the_association(
    alice: NetworkCaller, purge: bytes
) -> None:
    octets = purge[:-SIGNATURE] + b"\1" + bytes(15)
    assert is_refused(alice, octets) is FaultStatus.RPC_S_SEC_PKG_ERROR


@pytest.mark.parametrize("at", [22, 24, 40, -SIGNATURE - 2], ids=["opnum", "stub", "end", "pad"])
def test_a_changed_octet_ends_the_association(
    alice: NetworkCaller, purge: bytes, at: int, queue_manager: PrivateQueueManager, queue: str
) -> None:
    octets = bytearray(purge)
    octets[at] ^= 1
    alice.answer_to(bytes(octets))
    assert alice.ended
    assert bodies(queue_manager, queue) == [b"secret"]


def test_an_unknown_security_context_ends_the_association(
    alice: NetworkCaller, purge: bytes
) -> None:
    octets = bytearray(purge)
    octets[CONTEXT_ID] = 7
    assert is_refused(alice, bytes(octets)) is FaultStatus.RPC_S_ACCESS_DENIED


# Identities


def handshake_of(user: str) -> Handshake:
    """The beginning of a log-on."""
    return NtlmCredentials(user, PASSWORDS[user]).authentication(PKT_PRIVACY).begin()


def leg(caller: NetworkCaller, token: bytes, context_id: int = 0) -> bytes:
    """An alter_context that goes on with a handshake, or begins one."""
    interface = next(iter(caller.interfaces.values()))
    abstract = pdu.SyntaxId(interface.uuid, *interface.version)
    transfer = caller.client.contexts[0][1]
    return pdu.AlterContext(
        call_id=99,
        max_xmit_frag=5840,
        max_recv_frag=5840,
        p_context_elem=(pdu.ContextElement(0, abstract, (transfer,)),),
        auth=trailer(token, context_id),
    ).pack()


def trailer(token: bytes, context_id: int = 0) -> pdu.SecurityTrailer:
    kind = AuthenticationType.RPC_C_AUTHN_WINNT
    return pdu.SecurityTrailer(kind, PKT_PRIVACY, context_id, token)


def test_the_identity_behind_a_context_id_cannot_be_changed(alice: NetworkCaller) -> None:
    """Bob, knowing his own password, cannot become what alice's context stands for, nor she him."""
    bob = handshake_of("bob")
    answer = alice.answer_to(leg(alice, bob.step(b"")))
    assert isinstance(answer, pdu.Fault | pdu.BindNak)
    assert alice.ended


def test_the_handle_of_one_identity_is_no_good_to_another_on_the_same_connection(
    alice: NetworkCaller, queue_manager: PrivateQueueManager, queue: str
) -> None:
    """Bob logs on beside alice, under a context id of his own, and tries the handle she has."""
    handle = Reader(alice.caller).open(f"DIRECT=OS:.\\private$\\{queue}")
    bob = SecurityContext(AuthenticationType.RPC_C_AUTHN_WINNT, PKT_PRIVACY, 1, handshake_of("bob"))
    challenge = alice.answer_to(leg(alice, bob.step(b""), 1))
    assert isinstance(challenge, pdu.AlterContextResp)
    assert challenge.auth is not None
    last = leg(alice, bob.step(challenge.auth.auth_value), 1)
    assert isinstance(alice.answer_to(last), pdu.AlterContextResp)
    alice.client._security = bob
    assert isinstance(alice.answer_to(alice.made("R_GetServerPort")[1]), pdu.Response)
    answer = alice.answer_to(alice.made("R_PurgeQueue", phContext=handle)[1])
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.nca_s_fault_context_mismatch
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_second_auth3_ends_the_association(alice: NetworkCaller) -> None:
    again = pdu.Auth3(call_id=1, auth=trailer(b"NTLMSSP\0" + bytes(60))).pack()
    assert is_refused(alice, again) is FaultStatus.nca_s_proto_error


def test_a_second_bind_ends_the_association(alice: NetworkCaller) -> None:
    interface = alice.interfaces["remoteread"]
    abstract = pdu.SyntaxId(interface.uuid, *interface.version)
    element = pdu.ContextElement(0, abstract, (alice.client.contexts[0][1],))
    again = pdu.Bind(
        call_id=2, max_xmit_frag=5840, max_recv_frag=5840, p_context_elem=(element,)
    ).pack()
    assert isinstance(alice.answer_to(again), pdu.BindNak)
    assert alice.ended


def test_nobody_calls_before_the_handshake_is_over(connect: Connect) -> None:
    """A call between the first leg and the last is not served as anybody."""
    caller = connect("remoteread")
    begun = SecurityContext(
        AuthenticationType.RPC_C_AUTHN_WINNT, PKT_PRIVACY, 0, handshake_of("alice")
    )
    assert isinstance(caller.answer_to(leg(caller, begun.step(b""))), pdu.AlterContextResp)
    plain = bytearray(caller.made("R_GetServerPort")[1])
    token = trailer(bytes(SIGNATURE)).pack()
    plain[8:12] = (len(plain) + len(token)).to_bytes(2, "little") + SIGNATURE.to_bytes(2, "little")
    assert is_refused(caller, bytes(plain) + token) is FaultStatus.nca_s_proto_error
