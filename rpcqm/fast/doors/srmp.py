"""Repeated messages over HTTP: reads and writes envelopes, builds packets from earlier ones.

`parse_envelope`, `Receiver.build_packet` and `SrmpProtocol.request_of` stay the only definitions of
arriving and leaving messages (docs/request-templates.md).
"""

from typing import TYPE_CHECKING

from rpcqm.adm.message import Message
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.formats.envelope_read import EnvelopeForm, EnvelopeTemplates
from rpcqm.fast.formats.envelope_write import WritingTemplates
from rpcqm.fast.formats.srmp_packet import LONGEST, PacketTemplate, packet_like
from rpcqm.fast.turn import Turn
from rpcqm.srmp.connection.destinations import Destination
from rpcqm.srmp.connection.signed_senders import Signed
from rpcqm.srmp.elements import SrmpRequest, Stream
from rpcqm.srmp.incoming import is_url
from rpcqm.srmp.multipart import Headers, write_request
from rpcqm.srmp.reading import ReadEnvelope, parse_envelope

if TYPE_CHECKING:
    from rpcqm.srmp.connection.protocol import SrmpProtocol

ENVELOPES = 256
"""Forms of envelopes that are known again without parsing them.

Bound `srmp.envelope_templates` [forms]: that which was used longest ago is forgotten, and such
envelopes are parsed again.
"""


class RepeatedPosts:
    """Reads the envelopes of all peers and builds the packets of their messages."""

    def __init__(self, clock: Clock, protocol: "SrmpProtocol", turn: Turn) -> None:
        self._clock, self._turn = clock, turn
        self._build = protocol.receiver.build_packet
        self._envelopes = EnvelopeTemplates(ENVELOPES)

    def read(self, octets: bytes) -> ReadEnvelope:
        """The values of an envelope; raises DecodeError."""
        return self._envelopes.read(octets) if self._turn.is_on else parse_envelope(octets)

    def build_packet(self, request: SrmpRequest, destination: Destination, sender: Signed) -> bytes:
        """The packet of a message; raises DecodeError if no packet can hold it."""
        form = _form_of(request, destination)
        if form is None:
            return self._build(request, destination, sender)
        if form.packet is not None:
            packet = packet_like(form.packet, request, self._clock.now() // 1000)
            if packet is not None:
                return packet
        packet = self._build(request, destination, sender)
        form.packet = PacketTemplate(packet)
        return packet


def _form_of(request: SrmpRequest, destination: Destination) -> EnvelopeForm | None:
    """The form of a message with a destination and a body, whose packet may be like others.

    A message whose packet depends on more than its envelope has none.
    """
    form = request.form
    if not isinstance(form, EnvelopeForm) or not destination.is_here:
        return None
    if request.envelope.signature is not None or request.extension is not None:
        return None
    if not request.body or len(request.compound) > LONGEST:
        return None
    return form if is_url(request.envelope.to) else None


class RepeatedWriter:
    """Writes the messages of one queue, as long as it is connected."""

    def __init__(self, own: QueueManager, protocol: "SrmpProtocol", turn: Turn) -> None:
        self._own, self._protocol, self._turn = own, protocol, turn
        self.templates = WritingTemplates(self._url_of)

    def _url_of(self, name: FormatName) -> str:
        return self._protocol.own_urls.of(self._protocol.settings, name)

    def write(
        self, message: Message, name: FormatName, stream: Stream | None
    ) -> tuple[Headers, bytes]:
        """The headers and the content of a message; raises DecodeError, MQError."""
        protocol = self._protocol
        if not self._turn.is_on:
            return protocol.request_of(message, name, stream)
        written = self.templates.written(message.packet, stream)
        if written is not None:
            return write_request(*written, self._own.identifier)
        request = protocol.request_of(message, name, stream)
        self.templates.note(message.attributes, message.packet)
        return request
