"""Binds, alter_contexts and association groups, PDU by PDU."""

from dataclasses import replace
from uuid import UUID

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import (
    WHOLE,
    BindTimeFeatures,
    ContextResult,
    PfcFlags,
    ProviderReason,
    RejectReason,
)
from rpcqm.rpc.events import BindRefused, ProtocolError
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.presentation import FEATURE_PREFIX, NDR, NDR64
from tests.support.rpc.probe import (
    OTHER,
    PROBE,
    Rig,
    Wire,
    alter,
    bind,
    element,
    ended,
    is_fault,
    request,
)

FIRST, LAST = PfcFlags.PFC_FIRST_FRAG, PfcFlags.PFC_LAST_FRAG
NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
UNKNOWN = pdu.SyntaxId(UUID(int=99), 1)


# Binding.


def feature_syntax(features: BindTimeFeatures) -> pdu.SyntaxId:
    """The transfer syntax by which a client proposes bind-time features."""
    return pdu.SyntaxId(UUID(bytes_le=FEATURE_PREFIX + bytes([features]) + bytes(7)), 1)


def test_a_bind_is_acknowledged(rig: Rig) -> None:
    ack = rig.connect().bind(call_id=7)
    assert isinstance(ack, pdu.BindAck)
    assert ack.call_id == 7
    assert ack.p_result_list == (pdu.ContextAnswer(ContextResult.acceptance, 0, NDR),)
    assert ack.sec_addr == b"2103"
    assert ack.assoc_group_id != 0
    assert ack.pfc_flags == WHOLE


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        pytest.param(0, WHOLE, id="no flags"),
        pytest.param(PfcFlags.PFC_CONC_MPX, WHOLE | PfcFlags.PFC_CONC_MPX, id="multiplexing"),
        pytest.param(
            PfcFlags.PFC_SUPPORT_HEADER_SIGN,
            WHOLE | PfcFlags.PFC_SUPPORT_HEADER_SIGN,
            id="header signing",
        ),
        pytest.param(0xE8, WHOLE, id="flags without a meaning here"),
    ],
)
def test_the_flags_of_a_bind_are_answered(rig: Rig, asked: int, answered: int) -> None:
    assert rig.connect().bind(pfc_flags=asked).pfc_flags == answered


@pytest.mark.parametrize(
    ("xmit", "recv", "agreed"),
    [
        (0xFFFF, 0xFFFF, 5840),
        (0, 0xFFFF, 2048),
        (0xFFFF, 0, 2048),
        (3199, 0xFFFF, 3192),
        (0xFFFF, 3199, 3192),
        (4280, 4280, 4280),
    ],
)
def test_the_fragment_size_is_clamped(rig: Rig, xmit: int, recv: int, agreed: int) -> None:
    ack = rig.connect().bind(max_xmit_frag=xmit, max_recv_frag=recv)
    assert isinstance(ack, pdu.BindAck)
    assert (ack.max_xmit_frag, ack.max_recv_frag) == (agreed, agreed)


def results(answer: pdu.Pdu) -> list[tuple[int, int]]:
    assert isinstance(answer, pdu.BindAck | pdu.AlterContextResp)
    return [(each.result, each.reason) for each in answer.p_result_list]


ACCEPTED = (ContextResult.acceptance, 0)
NO_INTERFACE = (
    ContextResult.provider_rejection,
    ProviderReason.abstract_syntax_not_supported,
)
NO_SYNTAX = (
    ContextResult.provider_rejection,
    ProviderReason.proposed_transfer_syntaxes_not_supported,
)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param([element(1, UNKNOWN)], [NO_INTERFACE], id="unknown interface"),
        pytest.param([element(1, replace(PROBE, major=2))], [NO_INTERFACE], id="other major"),
        pytest.param([element(1, replace(PROBE, minor=0))], [ACCEPTED], id="older minor"),
        pytest.param([element(1, replace(PROBE, minor=3))], [NO_INTERFACE], id="newer minor"),
        pytest.param([element(1, transfers=[NDR64])], [NO_SYNTAX], id="other syntax"),
        pytest.param([element(1, transfers=[UNKNOWN, NDR])], [ACCEPTED], id="one of two"),
        pytest.param(
            [element(1), element(2, OTHER), element(3, UNKNOWN)],
            [ACCEPTED, ACCEPTED, NO_INTERFACE],
            id="several interfaces",
        ),
        pytest.param(
            [element(1), element(2)], [ACCEPTED, NO_SYNTAX], id="one interface is accepted once"
        ),
    ],
)
def test_presentation_contexts_are_answered_one_by_one(
    rig: Rig, elements: list[pdu.ContextElement], expected: list[tuple[int, int]]
) -> None:
    assert results(rig.connect().bind(p_context_elem=tuple(elements))) == expected


@pytest.mark.parametrize("asked", [0, 1, 2, 3])
def test_bind_time_features_are_acknowledged(rig: Rig, asked: int) -> None:
    features = element(1, transfers=[feature_syntax(BindTimeFeatures(asked))])
    answers = results(rig.connect().bind(p_context_elem=(element(0), features)))
    assert answers == [ACCEPTED, (ContextResult.negotiate_ack, asked)]


def test_unknown_bind_time_features_are_cleared(rig: Rig) -> None:
    syntax = replace(feature_syntax(BindTimeFeatures(3)))
    octets = bytearray(syntax.uuid.bytes_le)
    octets[8] = 0xFF
    features = element(1, transfers=[pdu.SyntaxId(UUID(bytes_le=bytes(octets)), 1)])
    assert results(rig.connect().bind(p_context_elem=(features,))) == [(3, 3)]


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param((), id="no context"),
        pytest.param((element(1, transfers=[]),), id="no transfer syntax"),
        pytest.param(
            (
                element(1, transfers=[feature_syntax(BindTimeFeatures(1))]),
                element(2, transfers=[feature_syntax(BindTimeFeatures(2))]),
            ),
            id="features twice",
        ),
    ],
)
def test_a_senseless_bind_gets_a_bind_nak(
    rig: Rig, elements: tuple[pdu.ContextElement, ...]
) -> None:
    wire = rig.connect()
    nak = wire.bind(p_context_elem=elements)
    assert isinstance(nak, pdu.BindNak)
    assert nak.provider_reject_reason == RejectReason.REASON_NOT_SPECIFIED
    assert nak.versions == ((5, 0),)
    assert ended(wire)
    assert isinstance(wire.events[-1], BindRefused)


def test_too_many_contexts_are_over_the_local_limit() -> None:
    wire = Rig(limits=Limits(contexts=3)).connect()
    nak = wire.bind(p_context_elem=tuple(element(index) for index in range(4)))
    assert isinstance(nak, pdu.BindNak)
    assert nak.provider_reject_reason == RejectReason.LOCAL_LIMIT_EXCEEDED


@pytest.mark.bound("limits.contexts")
def test_contexts_of_several_alter_contexts_are_counted_together() -> None:
    wire = Rig(limits=Limits(contexts=3)).connect()
    wire.bind()
    for index in (1, 2, 1, 2):
        (answer,) = wire.send(alter(p_context_elem=(element(index),)))
        assert isinstance(answer, pdu.AlterContextResp)
    (nak,) = wire.send(alter(p_context_elem=(element(3),)))
    assert isinstance(nak, pdu.BindNak)
    assert ended(wire)


def test_a_second_bind_gets_a_bind_nak(bound: Wire) -> None:
    nak = bound.bind()
    assert isinstance(nak, pdu.BindNak)
    assert ended(bound)


def test_a_bind_of_another_version_gets_a_bind_nak(rig: Rig) -> None:
    wrong = bytearray(bind())
    wrong[0] = 4
    wire = rig.connect()
    (nak,) = wire.send(bytes(wrong))
    assert isinstance(nak, pdu.BindNak)
    assert nak.provider_reject_reason == RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED
    assert ended(wire)


def test_a_cut_bind_gets_a_bind_nak(rig: Rig) -> None:
    wrong = bytearray(bind()[:-4])
    wrong[8:10] = len(wrong).to_bytes(2, "little")
    (nak,) = rig.connect().send(bytes(wrong))
    assert isinstance(nak, pdu.BindNak)


def test_minor_version_1_is_answered_in_kind(rig: Rig) -> None:
    wire = rig.connect()
    assert wire.bind(rpc_vers_minor=1).rpc_vers_minor == 1
    assert wire.call(0, rpc_vers_minor=1).rpc_vers_minor == 1


# alter_context.


def test_an_alter_context_adds_a_context(bound: Wire) -> None:
    (answer,) = bound.send(alter(call_id=3, p_context_elem=(element(5, OTHER),)))
    assert results(answer) == [ACCEPTED]
    assert isinstance(answer, pdu.AlterContextResp)
    assert answer.sec_addr == b""
    assert isinstance(bound.call(1, b"x", p_cont_id=5), pdu.Response)


def test_an_alter_context_echoes_group_and_sizes(rig: Rig) -> None:
    wire = rig.connect()
    ack = wire.bind(max_xmit_frag=3000, max_recv_frag=3000)
    (answer,) = wire.send(alter(assoc_group_id=12345, max_xmit_frag=5000, max_recv_frag=5000))
    assert isinstance(ack, pdu.BindAck)
    assert isinstance(answer, pdu.AlterContextResp)
    assert answer.assoc_group_id == ack.assoc_group_id
    assert answer.max_xmit_frag == 3000


def test_an_existing_context_may_be_proposed_again(bound: Wire) -> None:
    (answer,) = bound.send(alter())
    assert results(answer) == [ACCEPTED]


def test_a_refused_proposal_leaves_the_existing_context(bound: Wire) -> None:
    (answer,) = bound.send(alter(p_context_elem=(element(0, transfers=[UNKNOWN]),)))
    assert results(answer) == [NO_SYNTAX]
    assert isinstance(bound.call(0), pdu.Response)


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param((), id="no context"),
        pytest.param((element(0, transfers=[]),), id="no transfer syntax"),
        pytest.param((element(0, transfers=[NDR64]),), id="another transfer syntax"),
        pytest.param((element(0, OTHER),), id="another interface"),
    ],
)
def test_a_senseless_alter_context_ends_the_connection(
    bound: Wire, elements: tuple[pdu.ContextElement, ...]
) -> None:
    (answer,) = bound.send(alter(p_context_elem=elements))
    assert is_fault(answer, FaultStatus.nca_s_proto_error, NOT_EXECUTED)
    assert ended(bound)


@pytest.mark.parametrize(
    "octets",
    [alter(), request(0), pdu.Auth3(call_id=0).pack(), pdu.CoCancel(call_id=0).pack()],
    ids=["alter_context", "request", "auth3", "co_cancel"],
)
def test_nothing_comes_before_a_bind(rig: Rig, octets: bytes) -> None:
    wire = rig.connect()
    (answer,) = wire.send(octets)
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(wire)


@pytest.mark.parametrize("answer", [pdu.Response(call_id=1, p_cont_id=0), pdu.Shutdown(call_id=1)])
def test_pdus_of_a_server_are_refused(bound: Wire, answer: pdu.Pdu) -> None:
    (fault,) = bound.send(answer.pack())
    assert is_fault(fault, FaultStatus.nca_s_proto_error)
    assert isinstance(bound.events[-1], ProtocolError)


def test_auth3_without_a_handshake_is_refused(bound: Wire) -> None:
    trailer = pdu.SecurityTrailer(10, 6, 0, b"token")
    (fault,) = bound.send(pdu.Auth3(call_id=0, auth=trailer).pack())
    assert is_fault(fault, FaultStatus.nca_s_proto_error, NOT_EXECUTED)


def test_padding_that_an_alter_context_has_no_room_for(bound: Wire) -> None:
    trailer = pdu.SecurityTrailer(10, 6, 0, b"token", auth_pad_length=4)
    octets = bytearray(alter(auth=trailer))
    octets[-len(b"token") - 8 + 2] = 200
    (fault,) = bound.send(bytes(octets))
    assert is_fault(fault, FaultStatus.nca_s_proto_error, NOT_EXECUTED)
    assert ended(bound)


def test_padding_that_an_auth3_has_no_room_for(bound: Wire) -> None:
    trailer = pdu.SecurityTrailer(10, 6, 0, b"token", auth_pad_length=4)
    octets = bytearray(pdu.Auth3(call_id=0, auth=trailer).pack())
    octets[-len(b"token") - 8 + 2] = 200
    (fault,) = bound.send(bytes(octets))
    assert is_fault(fault, FaultStatus.nca_s_fault_remote_no_memory, NOT_EXECUTED)
    assert ended(bound)


# A choice of transfer syntaxes ([MS-RPCE] 3.3.1.5.6).


@pytest.fixture
def both() -> Wire:
    """A connection to a server whose interfaces have NDR and NDR64."""
    return Rig(syntaxes=(NDR, NDR64)).connect()


def accepted_syntaxes(answer: pdu.Pdu) -> list[pdu.SyntaxId | None]:
    assert isinstance(answer, pdu.BindAck | pdu.AlterContextResp)
    return [each.transfer_syntax if each.result == 0 else None for each in answer.p_result_list]


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param([element(0, transfers=[NDR])], [NDR], id="NDR alone"),
        pytest.param([element(0, transfers=[NDR64])], [NDR64], id="NDR64 alone"),
        pytest.param([element(0, transfers=[NDR, NDR64])], [NDR64], id="both in one element"),
        pytest.param(
            [element(0, transfers=[NDR]), element(1, transfers=[NDR64])],
            [None, NDR64],
            id="as Windows proposes them",
        ),
        pytest.param(
            [element(0, transfers=[NDR64]), element(1, transfers=[NDR])],
            [NDR64, None],
            id="the other way round",
        ),
        pytest.param(
            [
                element(0, transfers=[NDR]),
                element(1, OTHER, [NDR]),
                element(2, transfers=[NDR64]),
            ],
            [None, NDR, NDR64],
            id="of two interfaces",
        ),
        pytest.param(
            [element(0, transfers=[UNKNOWN]), element(1, transfers=[NDR])],
            [None, NDR],
            id="beside an unknown one",
        ),
    ],
)
def test_the_preferred_syntax_is_accepted_and_no_other(
    both: Wire, elements: list[pdu.ContextElement], expected: list[pdu.SyntaxId | None]
) -> None:
    assert accepted_syntaxes(both.bind(p_context_elem=tuple(elements))) == expected


def test_a_rejected_syntax_may_be_proposed_later(both: Wire) -> None:
    both.bind(p_context_elem=(element(0, transfers=[NDR]), element(1, transfers=[NDR64])))
    (answer,) = both.send(alter(p_context_elem=(element(0, transfers=[NDR]),)))
    assert accepted_syntaxes(answer) == [NDR]
    assert isinstance(both.call(0, p_cont_id=0), pdu.Response)
    assert isinstance(both.call(0, p_cont_id=1), pdu.Response)


@pytest.mark.parametrize("first", [NDR, NDR64])
def test_a_context_keeps_its_syntax(both: Wire, first: pdu.SyntaxId) -> None:
    both.bind(p_context_elem=(element(0, transfers=[first]),))
    other = NDR64 if first == NDR else NDR
    (answer,) = both.send(alter(p_context_elem=(element(0, transfers=[other]),)))
    assert is_fault(answer, FaultStatus.nca_s_proto_error, NOT_EXECUTED)
    assert ended(both)


# Association groups.


def test_a_connection_joins_a_known_group(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    joined = second.bind(assoc_group_id=ack.assoc_group_id)
    assert isinstance(joined, pdu.BindAck)
    assert joined.assoc_group_id == ack.assoc_group_id


def test_every_connection_has_a_group_of_its_own(rig: Rig) -> None:
    acks = [rig.connect().bind() for _ in range(3)]
    assert len({ack.assoc_group_id for ack in acks if isinstance(ack, pdu.BindAck)}) == 3


def test_an_unknown_group_is_refused(rig: Rig) -> None:
    assert isinstance(rig.connect().bind(assoc_group_id=1), pdu.BindNak)


def test_a_group_of_another_machine_is_refused(rig: Rig) -> None:
    ack = rig.connect("192.0.2.1").bind()
    assert isinstance(ack, pdu.BindAck)
    stranger = rig.connect("192.0.2.2")
    assert isinstance(stranger.bind(assoc_group_id=ack.assoc_group_id), pdu.BindNak)


def test_a_group_ends_with_its_last_connection(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    second.bind(assoc_group_id=ack.assoc_group_id)
    first.association.connection_lost()
    assert isinstance(rig.connect().bind(assoc_group_id=ack.assoc_group_id), pdu.BindAck)
    assert len(rig.groups) == 1


def test_a_dead_group_is_unknown(rig: Rig) -> None:
    wire = rig.connect()
    ack = wire.bind()
    assert isinstance(ack, pdu.BindAck)
    wire.association.connection_lost()
    assert len(rig.groups) == 0
    assert isinstance(rig.connect().bind(assoc_group_id=ack.assoc_group_id), pdu.BindNak)
