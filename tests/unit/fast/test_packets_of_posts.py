"""Packets that are like one before: a template makes what the careful way makes."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.builder import build_user_message
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.fast.formats.srmp_packet import LONGEST, PacketTemplate, packet_like
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.connection.signed_senders import packet_of
from rpcqm.srmp.elements import Envelope, MessageId, SrmpRequest
from rpcqm.srmp.incoming import attributes_of, destination_of
from rpcqm.srmp.reading import read_request
from rpcqm.srmp.settings import Redirection
from tests.support.srmp.srmp_door import ORDERS, SRMP, Door, msmq
from tests.support.srmp.srmp_samples import OWN_GUID, full_envelope, posted
from tests.support.srmp.srmp_text import Elements, Post, durable, message

SECONDS = st.integers(0, 0xFFFF_FFFF)
NOW = 1_780_000_000
SOURCE = UUID(int=8)
ON_THE_SOURCE = rf"MSMQ:PRIVATE={SOURCE}\0000000f"
"""A name that is written in another way in packets from elsewhere."""


def careful(request: SrmpRequest) -> bytes:
    destination = destination_of(request.envelope.to)
    return build_user_message(attributes_of(request, NOW, destination), request.body_offset)


def request(envelope: Envelope, body: bytes) -> SrmpRequest:
    return read_request(posted(envelope, body))


def _of_one_form(envelope: Envelope) -> st.SearchStrategy[Envelope]:
    """The envelope with other identifiers and times."""
    assert envelope.msmq is not None
    made = st.builds(
        replace,
        st.just(envelope),
        id=st.builds(MessageId, st.sampled_from((SOURCE, OWN_GUID)), st.integers(0, (1 << 64) - 1)),
        expires_at=SECONDS,
        msmq=st.just(envelope.msmq)
        if envelope.msmq.ttrq is None
        else st.builds(replace, st.just(envelope.msmq), ttrq=SECONDS),
    )
    return made if envelope.sent_at is None else st.builds(replace, made, sent_at=SECONDS)


def _forms() -> st.SearchStrategy[Envelope]:
    """Envelopes with one or another element left out."""
    full = replace(full_envelope(), delivery_receipt=None, commitment_receipt=None)
    full = replace(full, stream_receipt=None)
    assert full.msmq is not None
    left_out: dict[str, Any] = {"sent_at": None, "via": None, "stream": None}
    of_msmq: dict[str, Any] = {
        "connector_type": None,
        "correlation": None,
        "destination_mqf": (),
        "eod": None,
        "provider": None,
        "source_qm_guid": NULL_GUID,
        "trace": False,
        "ttrq": None,
    }

    def without(names: set[str]) -> Envelope:
        changed = {name: of_msmq[name] for name in names & of_msmq.keys()}
        msmq = replace(full.msmq, message_class=0, **changed)  # type: ignore[type-var]
        more = {name: left_out[name] for name in names & left_out.keys()}
        via = ON_THE_SOURCE if "label" in names else full.via
        return replace(full, msmq=msmq, **{"via": via, **more})

    return st.sets(st.sampled_from([*left_out, *of_msmq, "label"])).map(without)


BODIES = st.binary(min_size=1, max_size=70)


@given(st.data())
def test_a_packet_is_what_the_careful_way_makes_of_it(data: st.DataObject) -> None:
    form = data.draw(_forms())
    first, second = (request(data.draw(_of_one_form(form)), data.draw(BODIES)) for _ in range(2))
    packet = packet_like(PacketTemplate(careful(first)), second, NOW)
    is_from_the_same = first.envelope.id.guid == second.envelope.id.guid
    has_source = form.msmq is not None and form.msmq.source_qm_guid != NULL_GUID
    if packet is None:
        assert not has_source
        assert not is_from_the_same
    else:
        assert packet == careful(second)


def test_names_of_another_queue_manager_are_written_otherwise() -> None:
    """The same elements but for the GUID of <id>, on which the form of a name depends."""
    full = full_envelope()
    assert full.msmq is not None
    plain = replace(full, msmq=replace(full.msmq, source_qm_guid=NULL_GUID), via=ON_THE_SOURCE)
    plain = replace(plain, delivery_receipt=None, commitment_receipt=None, stream_receipt=None)
    here, there = (request(replace(plain, id=MessageId(guid)), b"x") for guid in (SOURCE, OWN_GUID))
    template = PacketTemplate(careful(here))
    assert packet_like(template, here, NOW) == careful(here)
    assert packet_like(template, there, NOW) is None


PUBLIC = "http://public.example/msmq/orders"


@pytest.mark.bound("srmp.template_request")
@pytest.mark.parametrize("to", [ORDERS, PUBLIC])
def test_bodies_of_any_size_are_stored_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    built: list[bytes] = []

    def counted(attributes: MessageAttributes, *more: Any) -> bytes:
        built.append(attributes.body)
        return packet_of(attributes, *more)

    monkeypatch.setattr("rpcqm.srmp.connection.receiving.packet_of", counted)
    settings = replace(SRMP, inbound=(Redirection(PUBLIC, ORDERS),))
    packets, bodies = [], _bodies(to)
    for on in (False, True):
        built.clear()
        door = Door(tmp_path / str(on), settings)
        door.speed.switch(on)
        for number, body in enumerate(bodies, 1):
            assert door.post(_numbered(to, number, body)) == 200
        packets.append([bytes(each.buffer) for each in door.messages()])
        door.stop()
    assert packets[0] == packets[1]
    assert built == [*bodies[:4], bodies[-1]]


def _numbered(to: str, number: int, body: bytes) -> Post:
    return message(to, body, Elements("label", number, services=durable(), msmq=msmq()))


def _bodies(to: str) -> list[bytes]:
    """The third is the first whose packet is like others; the last makes a request too long."""
    post = _numbered(to, 1, b"x" * 60_000)
    headers = tuple(post.headers.items())
    compound = read_request(HttpRequest("POST", post.target, headers, post.body)).compound
    room = LONGEST - len(compound) + 60_000
    return [b"1", b"22", b"3" * 100, b"", b"5" * 8, b"6" * room, b"7" * (room + 1)]
