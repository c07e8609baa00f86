"""The client's protocol machine joined to the server's, and what each refuses of the other."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.client_association import (
    TRANSITIONS,
    BindAccepted,
    BindFailed,
    ClientAssociation,
    ClientEvent,
    ClientState,
    Faulted,
    Responded,
    ServerBroken,
    ShutdownAsked,
)
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel, PfcFlags
from rpcqm.rpc.events import AuthenticationFailed, ProtocolError
from rpcqm.rpc.interface_registry import InterfacePolicy
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import NONE, PKT, PKT_INTEGRITY, PKT_PRIVACY
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmProvider, ntlm
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import (
    OTHER,
    PROBE,
    ProbeResponse,
    Rig,
    Wire,
    alter,
    ended,
    is_fault,
    split,
)

NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
LEVELS = [AuthenticationLevel(number) for number in (2, 3, 4, 5, 6)]
SIGNED = [PKT, PKT_INTEGRITY, PKT_PRIVACY]


class Pair:
    """A client and a server with a wire between them that a test may tamper with."""

    def __init__(self, rig: Rig, client: ClientAssociation) -> None:
        self.rig = rig
        self.client = client
        self.server: Wire = rig.connect()
        self.events: list[ClientEvent] = []

    def pump(
        self,
        up: Callable[[bytes], bytes] = lambda data: data,
        down: Callable[[bytes], bytes] = lambda data: data,
    ) -> list[ClientEvent]:
        """Carry bytes both ways until nothing moves; what the client saw."""
        seen: list[ClientEvent] = []
        while data := self.client.data_to_send():
            self.server.association.receive_data(up(data))
            seen += self.client.receive_data(down(self.server.association.data_to_send()))
        seen += self.client.receive_data(down(self.server.association.data_to_send()))
        self.events += seen
        return seen

    def call(self, opnum: int, stub: bytes = b"", **pump: Callable[[bytes], bytes]) -> ClientEvent:
        self.client.request(0, opnum, stub)
        (event,) = self.pump(**pump)
        return event


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(providers={10: NtlmProvider(TestAccounts(tmp_path))})


def joined(
    rig: Rig, level: AuthenticationLevel = NONE, credentials: NtlmCredentials | None = None
) -> Pair:
    """A bound pair, authenticated unless the level is NONE."""
    credentials = credentials or NtlmCredentials("alice", PASSWORD)
    authentication = None if level == NONE else ntlm(credentials, level)
    pair = Pair(rig, ClientAssociation(authentication=authentication))
    pair.client.bind([(PROBE, [NDR])])
    pair.pump()
    return pair


def test_a_bind_proposes_each_syntax_apart(rig: Rig) -> None:
    pair = Pair(rig, ClientAssociation())
    pair.client.bind([(PROBE, [NDR64, NDR]), (OTHER, [NDR])])
    (event,) = pair.pump()
    assert isinstance(event, BindAccepted)
    assert [answer.result for answer in event.answers] == [2, 0, 0]
    assert pair.client.context_of(PROBE) == (1, NDR)
    assert pair.client.context_of(OTHER) == (2, NDR)
    assert pair.client.multiplexed
    assert pair.client.state is ClientState.BOUND


def test_further_interfaces_are_bound_by_alter_context(rig: Rig) -> None:
    pair = joined(rig)
    pair.client.alter([(OTHER, [NDR])])
    (event,) = pair.pump()
    assert isinstance(event, BindAccepted)
    assert pair.client.context_of(OTHER) == (1, NDR)


def test_a_call_and_its_answer(rig: Rig) -> None:
    pair = joined(rig)
    assert pair.call(1, b"octets") == Responded(2, b"octets\0\0\0\0")
    assert pair.client.calls_in_flight == 0


def test_a_fault_is_told(rig: Rig) -> None:
    pair = joined(rig)
    assert pair.call(99) == Faulted(2, FaultStatus.nca_s_op_rng_error, executed=False)
    assert pair.call(8) == Faulted(3, FaultStatus.nca_s_fault_unspec, executed=True)


@pytest.mark.parametrize("level", [NONE, *LEVELS], ids=lambda level: level.name)
def test_long_calls_are_fragmented_both_ways_at_every_level(
    rig: Rig, level: AuthenticationLevel
) -> None:
    pair = joined(rig, level)
    for length in (0, 1, 15, 16, 17, 5800, 5816, 5817, 20_000):
        octets = bytes(range(256)) * (length // 256 + 1)
        event = pair.call(1, octets[:length])
        assert isinstance(event, Responded)
        assert event.stub_data == octets[:length] + bytes(4)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_the_handler_sees_who_calls_and_how(rig: Rig, level: AuthenticationLevel) -> None:
    pair = joined(rig, level)
    pair.call(0)
    (call,) = rig.handlers.calls
    assert call.identity.name == "alice"
    assert call.authentication_level == (PKT if level == 3 else level)


def test_sealed_octets_do_not_show_on_the_wire(rig: Rig) -> None:
    wires: list[bytes] = []

    def spy(data: bytes) -> bytes:
        wires.append(data)
        return data

    pair = joined(rig, PKT_PRIVACY)
    pair.call(1, b"a secret text", up=spy, down=spy)
    assert b"a secret text" not in b"".join(wires)
    joined(rig, PKT_INTEGRITY).call(1, b"a secret text", up=spy, down=spy)
    assert b"a secret text" in b"".join(wires)


def test_pdus_with_a_trailer_are_aligned_and_in_size(rig: Rig) -> None:
    pair = joined(rig, PKT_PRIVACY)
    pair.client.request(0, 1, bytes(12_000))
    data = pair.client.data_to_send()
    for each in split(data):
        assert len(each.pack()) <= 5840
        assert isinstance(each, pdu.Request)
        assert each.auth is not None
        assert (len(each.stub_data) + each.auth.auth_pad_length) % 16 == 0


@pytest.mark.parametrize(
    "credentials",
    [NtlmCredentials("alice", "wrong"), NtlmCredentials("bob", PASSWORD)],
    ids=["wrong password", "refused account"],
)
def test_a_failed_authentication_shows_at_the_first_request(
    rig: Rig, credentials: NtlmCredentials
) -> None:
    pair = joined(rig, PKT_INTEGRITY, credentials)
    assert isinstance(pair.server.events[-1], AuthenticationFailed)
    assert pair.call(0) == Faulted(2, FaultStatus.RPC_S_ACCESS_DENIED, executed=True)
    assert isinstance(pair.server.events[-1], ProtocolError)
    assert rig.handlers.calls == []


def test_an_unknown_authentication_type_is_rejected(tmp_path: Path) -> None:
    pair = Pair(Rig(), ClientAssociation(authentication=ntlm(NtlmCredentials("a"), PKT)))
    pair.client.bind([(PROBE, [NDR])])
    assert pair.pump() == [BindFailed("the bind was rejected with reason 8", 8)]
    assert pair.client.state is ClientState.CLOSED


@pytest.mark.parametrize("level", [0, 1, 7, 255])
def test_a_level_that_is_none_is_rejected(rig: Rig, level: int) -> None:
    trailer = pdu.SecurityTrailer(10, level, 0, b"none")
    nak = rig.connect().bind(auth=trailer)
    assert isinstance(nak, pdu.BindNak)
    assert nak.provider_reject_reason == 0


def test_a_hostile_token_is_rejected(rig: Rig) -> None:
    nak = rig.connect().bind(auth=pdu.SecurityTrailer(10, 6, 0, b"NTLMSSP\0garbage"))
    assert isinstance(nak, pdu.BindNak)
    assert nak.provider_reject_reason == 9


def flip(position: int) -> Callable[[bytes], bytes]:
    """Change one bit of what passes."""

    def change(data: bytes) -> bytes:
        if not data:
            return data
        changed = bytearray(data)
        changed[position] ^= 0x01
        return bytes(changed)

    return change


@pytest.mark.parametrize("level", SIGNED, ids=lambda level: level.name)
@pytest.mark.parametrize(
    "position",
    [
        pytest.param(16, id="alloc_hint"),
        pytest.param(24, id="stub data"),
        pytest.param(-1, id="sequence number"),
        pytest.param(-10, id="checksum"),
        pytest.param(-21, id="reserved octet of the trailer"),
    ],
)
def test_a_changed_request_ends_the_connection(
    rig: Rig, level: AuthenticationLevel, position: int
) -> None:
    pair = joined(rig, level)
    event = pair.call(1, b"octets and octets", up=flip(position))
    assert event == Faulted(2, FaultStatus.RPC_S_SEC_PKG_ERROR, executed=True)
    assert rig.handlers.calls == []


@pytest.mark.parametrize("level", SIGNED, ids=lambda level: level.name)
@pytest.mark.parametrize("position", [16, 24, -1, -10])
def test_a_changed_response_is_refused_by_the_client(
    rig: Rig, level: AuthenticationLevel, position: int
) -> None:
    pair = joined(rig, level)
    event = pair.call(1, b"octets and octets", down=flip(position))
    assert isinstance(event, ServerBroken)
    assert pair.client.state is ClientState.CLOSED


@pytest.mark.parametrize("level", SIGNED, ids=lambda level: level.name)
def test_a_replayed_request_ends_the_connection(rig: Rig, level: AuthenticationLevel) -> None:
    pair = joined(rig, level)
    pair.client.request(0, 1, b"once")
    data = pair.client.data_to_send()
    (answer,) = pair.server.send(data)
    assert isinstance(answer, pdu.Response)
    (fault,) = pair.server.send(data)
    assert isinstance(fault, pdu.Fault)
    assert fault.status == FaultStatus.RPC_S_SEC_PKG_ERROR


def without_trailer(data: bytes) -> bytes:
    (one,) = split(data)
    return replace(one, auth=None).pack()


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_taking_the_signature_away_is_refused(rig: Rig, level: AuthenticationLevel) -> None:
    pair = joined(rig, level)
    event = pair.call(0, up=without_trailer)
    assert event == Faulted(2, FaultStatus.RPC_S_ACCESS_DENIED, executed=True)


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_an_unsigned_response_is_refused_by_the_client(
    rig: Rig, level: AuthenticationLevel
) -> None:
    pair = joined(rig, level)
    event = pair.call(0, down=lambda data: without_trailer(data) if data else data)
    assert isinstance(event, ServerBroken)


def dummy(level: int, context_id: int = 0) -> pdu.SecurityTrailer:
    return pdu.SecurityTrailer(10, level, context_id, b"\x01" + bytes(15))


def test_at_connect_level_a_dummy_verifier_or_none_will_do(rig: Rig) -> None:
    pair = joined(rig, AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT)
    for auth in (None, dummy(2)):
        answer = pair.server.call(1, b"x", auth=auth)
        assert isinstance(answer, pdu.Response)
        assert answer.auth is None
    assert {call.authentication_level for call in rig.handlers.calls} == {2}
    assert {call.identity.name for call in rig.handlers.calls} == {"alice"}


def test_a_pkt_caller_that_does_not_sign_counts_as_connect(rig: Rig) -> None:
    pair = joined(rig, PKT)
    for auth in (None, dummy(4)):
        answer = pair.server.call(1, b"x", auth=auth)
        assert isinstance(answer, pdu.Response)
        assert answer.auth is None
    assert {call.authentication_level for call in rig.handlers.calls} == {2}


def test_a_pkt_caller_that_does_not_sign_is_not_enough_where_pkt_is_needed(tmp_path: Path) -> None:
    provider = NtlmProvider(TestAccounts(tmp_path))
    rig = Rig(policy=InterfacePolicy(minimum_level=PKT), providers={10: provider})
    pair = joined(rig, PKT)
    answer = pair.server.call(0, auth=dummy(4))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.RPC_S_ACCESS_DENIED
    assert isinstance(pair.call(0), Responded)


@pytest.mark.parametrize(
    "trailer",
    [
        pytest.param(dummy(5), id="dummy at PKT_INTEGRITY"),
        pytest.param(dummy(2), id="level taken back"),
        pytest.param(dummy(6), id="level raised"),
        pytest.param(dummy(5, 7), id="unknown context"),
        pytest.param(replace(dummy(5), auth_type=16), id="other provider"),
        pytest.param(replace(dummy(5), auth_type=0), id="no provider"),
    ],
)
def test_a_trailer_that_was_not_negotiated_ends_the_connection(
    rig: Rig, trailer: pdu.SecurityTrailer
) -> None:
    pair = joined(rig, PKT_INTEGRITY)
    answer = pair.server.call(0, b"x", auth=trailer)
    assert isinstance(answer, pdu.Fault)
    assert answer.status in (FaultStatus.RPC_S_ACCESS_DENIED, FaultStatus.RPC_S_SEC_PKG_ERROR)
    assert isinstance(pair.server.events[-1], ProtocolError)
    assert rig.handlers.calls == []


def test_a_trailer_without_any_authentication_ends_the_connection(rig: Rig) -> None:
    pair = joined(rig)
    answer = pair.server.call(0, auth=dummy(2))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.RPC_S_ACCESS_DENIED


def test_a_request_before_the_last_leg_ends_the_connection(rig: Rig) -> None:
    client = ClientAssociation(authentication=ntlm(NtlmCredentials("alice", PASSWORD), PKT))
    client.bind([(PROBE, [NDR])])
    wire = rig.connect()
    wire.send(client.data_to_send())
    assert wire.association.unfinished
    answer = wire.call(0, auth=dummy(4))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.nca_s_proto_error
    assert answer.pfc_flags == WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE


def test_padding_longer_than_the_body_ends_the_connection(rig: Rig) -> None:
    pair = joined(rig, AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT)
    octets = bytearray(pdu.Request(call_id=5, p_cont_id=0, opnum=0, auth=dummy(2)).pack())
    octets[24 + 2] = 9
    (answer,) = pair.server.send(bytes(octets))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.nca_s_proto_error


def test_a_handshake_over_three_alter_contexts(rig: Rig) -> None:
    """impacket authenticates anew by alter_context, under another auth_context_id."""
    wire = rig.connect()
    wire.bind()
    handshake = ntlm(NtlmCredentials("alice", PASSWORD), PKT_INTEGRITY).begin()
    element = pdu.ContextElement(0, PROBE, (NDR,))

    def leg(token: bytes) -> pdu.AlterContextResp:
        trailer = pdu.SecurityTrailer(10, 5, 7, token)
        octets = pdu.AlterContext(
            call_id=1,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            p_context_elem=(element,),
            auth=trailer,
        )
        (answer,) = wire.send(octets.pack())
        assert isinstance(answer, pdu.AlterContextResp)
        return answer

    challenge = leg(handshake.step(b""))
    assert challenge.auth is not None
    last = leg(handshake.step(challenge.auth.auth_value))
    assert last.auth is None
    assert isinstance(wire.call(0), pdu.Response)
    assert rig.handlers.calls[-1].identity.is_anonymous


def auth_leg(wire: Wire, context_id: int, token: bytes, level: int = 5) -> pdu.Pdu:
    """One alter_context with a token."""
    octets = alter(auth=pdu.SecurityTrailer(10, level, context_id, token))
    (answer,) = wire.send(octets)
    return answer


def first_token() -> bytes:
    return ntlm(NtlmCredentials("alice", PASSWORD), PKT_INTEGRITY).begin().step(b"")


@pytest.mark.bound("limits.security_contexts")
def test_a_connection_has_as_many_security_contexts_as_it_may(tmp_path: Path) -> None:
    provider = NtlmProvider(TestAccounts(tmp_path))
    wire = Rig(providers={10: provider}, limits=Limits(security_contexts=2)).connect()
    wire.bind()
    for context_id in (1, 2):
        assert isinstance(auth_leg(wire, context_id, first_token()), pdu.AlterContextResp)
    fault = auth_leg(wire, 3, first_token())
    assert is_fault(fault, FaultStatus.nca_s_proto_error, NOT_EXECUTED)
    assert ended(wire)


def log_on(wire: Wire, context_id: int) -> None:
    """A handshake of its own for a further context, in alter_context and rpc_auth_3."""
    handshake = ntlm(NtlmCredentials("alice", PASSWORD), PKT_INTEGRITY).begin()
    challenge = auth_leg(wire, context_id, handshake.step(b""))
    assert isinstance(challenge, pdu.AlterContextResp)
    assert challenge.auth is not None
    last = handshake.step(challenge.auth.auth_value)
    trailer = pdu.SecurityTrailer(10, 5, context_id, last)
    assert wire.send(pdu.Auth3(call_id=1, auth=trailer).pack()) == []


def test_a_further_security_context_takes_the_place_of_the_oldest(tmp_path: Path) -> None:
    provider = NtlmProvider(TestAccounts(tmp_path))
    rig = Rig(providers={10: provider}, limits=Limits(security_contexts=2))
    rig.endpoint.for_objects = True
    wire = rig.connect()
    wire.bind()
    for context_id in range(80):
        log_on(wire, context_id)
    assert not ended(wire)
    assert isinstance(auth_leg(wire, 77, first_token()), pdu.AlterContextResp), "77 was dropped"


def test_elsewhere_a_further_security_context_is_refused(tmp_path: Path) -> None:
    provider = NtlmProvider(TestAccounts(tmp_path))
    wire = Rig(providers={10: provider}, limits=Limits(security_contexts=2)).connect()
    wire.bind()
    for context_id in (1, 2):
        log_on(wire, context_id)
    fault = auth_leg(wire, 3, first_token())
    assert is_fault(fault, FaultStatus.nca_s_proto_error, NOT_EXECUTED)
    assert ended(wire)


def test_an_empty_last_token_for_an_established_context_is_ignored(rig: Rig) -> None:
    pair = joined(rig, PKT_INTEGRITY)
    token = b"NTLMSSP\0\3\0\0\0" + bytes(52)
    trailer = pdu.SecurityTrailer(10, 5, 0, token)
    (answer,) = pair.server.send(alter(auth=trailer))
    assert isinstance(answer, pdu.AlterContextResp)
    assert not ended(pair.server)


@pytest.mark.parametrize(
    ("auth_type", "level", "status"),
    [
        pytest.param(10, 6, FaultStatus.RPC_S_ACCESS_DENIED, id="another level"),
        pytest.param(16, 5, FaultStatus.RPC_S_SEC_PKG_ERROR, id="another provider"),
        pytest.param(0, 5, FaultStatus.RPC_S_ACCESS_DENIED, id="no provider"),
    ],
)
def test_a_handshake_goes_on_as_it_began(
    rig: Rig, auth_type: int, level: int, status: FaultStatus
) -> None:
    wire = rig.connect()
    wire.bind()
    assert isinstance(auth_leg(wire, 1, first_token()), pdu.AlterContextResp)
    trailer = pdu.SecurityTrailer(auth_type, level, 1, b"token")
    (fault,) = wire.send(alter(auth=trailer))
    assert is_fault(fault, status, NOT_EXECUTED)
    assert ended(wire)


@pytest.mark.parametrize("by_auth3", [False, True], ids=["alter_context", "auth3"])
def test_a_finished_handshake_is_not_done_again(rig: Rig, by_auth3: bool) -> None:
    pair = joined(rig, PKT_INTEGRITY)
    trailer = pdu.SecurityTrailer(10, 5, 0, first_token())
    again = pdu.Auth3(call_id=1, auth=trailer).pack() if by_auth3 else alter(auth=trailer)
    (fault,) = pair.server.send(again)
    assert isinstance(fault, pdu.Fault)
    assert ended(pair.server)


def test_calls_are_multiplexed_and_cancelled_under_protection(rig: Rig) -> None:
    pair = joined(rig, PKT_PRIVACY)
    ids = [pair.client.request(0, 2, name) for name in (b"a", b"b", b"c")]
    pair.pump()
    pair.client.cancel(ids[1])
    pair.pump()
    assert rig.handlers.seen == ["cancelled b"]
    for index in (2, 1, 0):
        rig.handlers.waiting[index].succeed(ProbeResponse(octets=b"done"))
    assert [event.call_id for event in pair.pump() if isinstance(event, Responded)] == ids[::-1]


def test_an_orphaned_call_ends_on_both_sides(rig: Rig) -> None:
    pair = joined(rig)
    call_id = pair.client.request(0, 2, b"a")
    pair.pump()
    pair.client.orphan(call_id)
    assert pair.pump() == []
    assert rig.handlers.seen == ["abandoned a"]
    assert pair.client.calls_in_flight == 0


def test_a_stopping_server_asks_for_the_end(rig: Rig) -> None:
    pair = joined(rig)
    pair.server.association.stop()
    assert pair.pump() == [ShutdownAsked()]


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"\x05\x00\x0b\x03" + bytes(40), id="a bind"),
        pytest.param(pdu.CoCancel(call_id=1).pack(), id="a cancel"),
        pytest.param(b"garbage of sixteen octets", id="garbage"),
        pytest.param(pdu.Response(call_id=1, p_cont_id=0, stub_data=bytes(6000)).pack(), id="long"),
    ],
)
def test_what_no_server_sends_ends_the_connection(rig: Rig, octets: bytes) -> None:
    pair = joined(rig)
    (event,) = pair.client.receive_data(octets)
    assert isinstance(event, ServerBroken)
    assert pair.client.state is ClientState.CLOSED


def test_a_response_nobody_asked_for_is_ignored(rig: Rig) -> None:
    pair = joined(rig)
    assert pair.client.receive_data(pdu.Response(call_id=77, p_cont_id=0).pack()) == []
    assert isinstance(pair.call(0), Responded)


def test_a_response_over_the_limit_ends_the_connection(rig: Rig) -> None:
    pair = Pair(rig, ClientAssociation(response_bytes=10_000))
    pair.client.bind([(PROBE, [NDR])])
    pair.pump()
    assert isinstance(pair.call(1, bytes(9_000)), Responded)
    assert isinstance(pair.call(1, bytes(12_000)), ServerBroken)


def test_the_client_may_be_fed_byte_by_byte(rig: Rig) -> None:
    pair = joined(rig, PKT_PRIVACY)
    pair.client.request(0, 1, bytes(7000))
    pair.server.association.receive_data(pair.client.data_to_send())
    events: list[ClientEvent] = []
    for octet in pair.server.association.data_to_send():
        events += pair.client.receive_data(bytes([octet]))
    assert events == [Responded(2, bytes(7004))]


def test_methods_out_of_turn_are_programming_errors() -> None:
    client = ClientAssociation()
    with pytest.raises(RuntimeError):
        client.request(0, 0, b"")
    client.bind([(PROBE, [NDR])])
    with pytest.raises(RuntimeError):
        client.bind([(PROBE, [NDR])])


def test_every_state_of_the_client_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(ClientState)
