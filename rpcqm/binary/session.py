"""One protocol session between two queue managers, without sockets ([MS-MQQB] 3.1).

A session is fed with the bytes of its connection and the time of a clock. It calls its host to
transmit bytes, to take arrived messages, and to report acknowledged messages of ours. States and
the packets that they allow are one table; another packet, or one that cannot be decoded, closes the
session ([MS-MQQB] 3.1.5.1.3).

Messages are counted in each direction, all of them and the recoverable ones apart, from 1 and
modulo 2**16 ([MS-MQQB] 3.1.1.4). `RecoverableMessageReceivedCount` counts those that have arrived;
the host reports those on the disk by `persisted`, and only these are acknowledged.
"""

from collections.abc import Callable, Sequence

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.binary.framing import PacketBuffer, may_carry_acknowledgement
from rpcqm.binary.sent_messages import COUNTER, SentMessages
from rpcqm.binary.session_host import ASKING, Identities, SessionHost, SessionState, TakeTogether
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_message
from rpcqm.codec.packet.base import MAXIMUM_FRAME_SIZE, SESSION_HEADER_SIZE, SessionHeader
from rpcqm.codec.packet.fields import (
    CONNECTION_REFUSED,
    DELIVERY_MODE,
    INTERNAL,
    SESSION_HEADER,
)
from rpcqm.codec.packet.internal import (
    RESPONSE_RESERVED,
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    OperatingSystemFlags,
    SessionAckPacket,
    check_internal_packet,
)
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.patch import with_session_header, without_session_header
from rpcqm.codec.packet.user import QueueFormatType

_ACK_BITS = 32
BROKEN, REFUSED_BY_PEER = "the connection was closed", "the peer refuses the session"
_INTERNAL_AT, _INTERNAL = INTERNAL
_REFUSED_AT, _REFUSED = CONNECTION_REFUSED
_SESSION_HEADER_AT, _SESSION_HEADER = SESSION_HEADER
_DELIVERY_MODE_AT, _DELIVERY_MODE = DELIVERY_MODE
_TIMESTAMP = 0xFFFF_FFFF
_RECOVERABLE_ACK_TIMEOUTS = (0x1F4, 0x1D4C0)
_ROUND_TRIPS = 8
_MOST_UNPERSISTED = 0x2000
_LARGEST_BEFORE_OPEN = EstablishConnectionPacket.size()


class Session:
    """A session over one connection; `start_initiator` or `start_acceptor` comes first.

    `direct` says that the session serves a direct format name, which doubles the Session Ack Wait
    Timer. Counters are the specification's, modulo 2**16.
    """

    def __init__(
        self,
        host: SessionHost,
        identities: Identities,
        clock: Clock,
        timers: Timers,
        settings: BinarySettings | None = None,
        *,
        direct: bool = True,
    ) -> None:
        self.settings = settings or BinarySettings()
        self.state = SessionState.CLOSED
        self.local_guid = identities.local
        self.remote_qm_guid = identities.remote
        self.direct = direct
        self.close_reason = ""
        self.violated = False
        """Whether it was closed because the peer broke the protocol."""
        self.message_sent_count = 0
        self.recoverable_message_sent_count = 0
        self.message_received_count = 0
        self.recoverable_message_received_count = 0
        self.unacked_received_msg_count = 0
        self.window_size = self.settings.window_size
        self.received_window_size = self.settings.window_size
        self.ack_wait_timeout = self.settings.ack_wait_timeout
        self.recoverable_ack_send_timeout = _TIMESTAMP
        self.session_active = False
        self.received_ack = False
        self.request_stamp = self.peer_started = 0
        """How long the initiator's system had run; when it started, by our own clock."""
        self.take_together: TakeTogether | None = None
        self._carefully = 0
        self._withheld_at: int | None = None
        """The number of messages before the first one that is not acknowledged."""
        self._host = host
        self._clock = clock
        self._timers = timers
        self._arrived = PacketBuffer()
        self._sent = SentMessages()
        self._acknowledged_recoverable = 0
        self._persisted_recoverable = 0
        self._persisted_early: set[int] = set()
        self._ack_send_started = 0
        self._ack_send_duration = 0
        self._initialization: Timer | None = None
        self._cleanup: Timer | None = None
        self._ack_wait: Timer | None = None
        self._ack_send: Timer | None = None

    @property
    def is_open(self) -> bool:
        return self.state is SessionState.OPEN

    @property
    def un_acked_message_count(self) -> int:
        """UnAckedMessageCount: sent messages that the peer has not counted yet."""
        return len(self._sent.in_flight)

    @property
    def room(self) -> int:
        """How many messages the windows of both sides let out ([MS-MQQB] 3.1.7.1, step 2)."""
        if self.state is not SessionState.OPEN:
            return 0
        window = max(1, min(self.window_size, self.received_window_size))
        sent = self._sent
        return min(window - len(sent.in_flight), _MOST_UNPERSISTED - len(sent.unpersisted))

    @property
    def can_send(self) -> bool:
        return self.room > 0

    # Start and end

    def start_initiator(self, pinged: bool = False) -> None:
        """Ask for a session over the new connection ([MS-MQQB] 3.1.5.2.3)."""
        self._start_cleanup()
        self.request_stamp = self._clock.monotonic() & _TIMESTAMP
        flags = OperatingSystemFlags.of(RE=0x10, SE=not pinged, OS=1)
        header = EstablishConnectionHeader(
            self.local_guid,
            self.remote_qm_guid,
            self.request_stamp,
            flags,
        )
        self._change(SessionState.WAITING_ECR_MSG)
        self._host.transmit(EstablishConnectionPacket.of(header))
        self._start_initialization()

    def start_acceptor(self) -> None:
        """Wait for the request of a peer that has connected ([MS-MQQB] 3.1.5.10)."""
        self._start_cleanup()
        self._change(SessionState.WAITING_EC_MSG)
        self._start_initialization()

    def close(self, reason: str) -> None:
        """End the session ([MS-MQQB] 3.1.5.9); a closed one stays closed."""
        if self.state is SessionState.CLOSED and self.close_reason:
            return
        for timer in (self._initialization, self._cleanup, self._ack_wait, self._ack_send):
            if timer is not None:
                timer.cancel()
        self._initialization = self._cleanup = self._ack_wait = self._ack_send = None
        self.state = SessionState.CLOSED
        self.close_reason = reason
        self._arrived.clear()
        self._sent.clear()
        self._host.closed(reason)

    def _violation(self, reason: str) -> None:
        """Close: the peer breaks the rules ([MS-MQQB] 3.1.5.1.3)."""
        self.violated = True
        self.close(reason)

    @property
    def unfinished_bytes(self) -> int:
        """Bytes that have arrived of a packet that is not whole yet."""
        return self._arrived.unfinished

    def disconnected(self) -> None:
        """Close: the connection is gone ([MS-MQQB] 3.1.7.3)."""
        self.close(BROKEN)

    def _change(self, state: SessionState) -> None:
        self.state = state
        self._host.state_changed(state)

    # Receiving

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the connection, in whatever pieces they come."""
        self._arrived.add(data)
        try:
            while self.state is not SessionState.CLOSED:
                is_open = self.state is SessionState.OPEN
                if is_open and self.take_together is not None:
                    self._take_together(self.take_together)
                packet = self._arrived.next(MAXIMUM_FRAME_SIZE if is_open else _LARGEST_BEFORE_OPEN)
                if packet is None:
                    break
                self._receive_packet(packet)
        except DecodeError as error:
            self._violation(f"bad packet: {error}")

    def _take_together(self, take: TakeTogether) -> None:
        """Let the host take several packets at once, unless the next one has to be taken alone."""
        while not self._carefully:
            data, start = self._arrived.rest
            if start == len(data):
                return
            end, self._carefully = take(data, start)
            self._arrived.skip_to(end)
        self._carefully -= 1

    def _receive_packet(self, packet: bytes) -> None:
        self.received_ack = True
        message = None
        if packet[_INTERNAL_AT] & _INTERNAL:
            kind = PacketKind(check_internal_packet(packet))
        else:
            message = PacketMessage(without_session_header(packet))
            kind = identify_message(message)
            if kind is PacketKind.USER_MESSAGE and self.state is SessionState.OPEN:
                self._message(kind, packet, message)
                return
        if (self.state, kind) not in _TABLE:
            self._violation(f"bad packet: {kind.name} in state {self.state.value}")
            return
        if message is None and packet[_REFUSED_AT] & _REFUSED:
            self._refused_by_peer(kind)
            return
        handler = _TABLE[self.state, kind]
        if handler is not None:
            handler(self, packet)
        elif message is not None:
            self._message(kind, packet, message)

    def _refused_by_peer(self, kind: PacketKind) -> None:
        """Close after a refusal; only an answer can refuse ([MS-MQQB] 2.2.1)."""
        if self.state in ASKING:
            self.close(REFUSED_BY_PEER)
        else:
            self._violation(f"bad packet: {kind.name} that refuses")

    def _establish_request(self, packet: bytes) -> None:
        """[MS-MQQB] 3.1.5.3.1; a request for another queue manager is refused."""
        request = EstablishConnectionPacket.decode(packet).establish_connection_header
        refused = request.server_guid not in (self.local_guid, NULL_GUID)
        self.remote_qm_guid = request.client_guid
        self.request_stamp = request.timestamp
        self.peer_started = self._clock.monotonic() - self.request_stamp
        asked = request.operating_system
        header = EstablishConnectionHeader(
            request.client_guid,
            self.local_guid,
            self.request_stamp,
            OperatingSystemFlags.of(RE=0x10, SE=asked.SE, OS=1),
        )
        self._host.transmit(EstablishConnectionPacket.of(header, refused, RESPONSE_RESERVED))
        if refused:
            self.close(f"session with another queue manager, {request.server_guid}")
        else:
            self._change(SessionState.WAITING_CP_MSG)
            self._start_initialization()

    def _establish_response(self, packet: bytes) -> None:
        """[MS-MQQB] 3.1.5.3.2; the peer behind a direct name is learned here (G26)."""
        header = EstablishConnectionPacket.decode(packet).establish_connection_header
        if header.client_guid != self.local_guid:
            self.close("the peer answers somebody else")
            return
        if self.remote_qm_guid not in (NULL_GUID, header.server_guid):
            self.close(f"another queue manager answers, {header.server_guid}")
            return
        self.remote_qm_guid = header.server_guid
        round_trip = (self._clock.monotonic() - header.timestamp) & _TIMESTAMP
        low, high = _RECOVERABLE_ACK_TIMEOUTS
        self.recoverable_ack_send_timeout = max(low, min(round_trip * _ROUND_TRIPS, high))
        self._change(SessionState.WAITING_CPR_MSG)
        self._send_parameters(self.recoverable_ack_send_timeout, self.ack_wait_timeout)

    def _parameters_request(self, packet: bytes) -> None:
        """[MS-MQQB] 3.1.5.4.1: the initiator's times hold for both."""
        header = ConnectionParametersPacket.decode(packet).connection_parameters_header
        header.validate()
        self.received_window_size = header.window_size
        self.ack_wait_timeout = header.ack_timeout
        self.recoverable_ack_send_timeout = header.recoverable_ack_timeout
        self._send_parameters(header.recoverable_ack_timeout, header.ack_timeout)
        self._opened()

    def _parameters_response(self, packet: bytes) -> None:
        """[MS-MQQB] 3.1.5.4.2."""
        header = ConnectionParametersPacket.decode(packet).connection_parameters_header
        header.validate()
        self.received_window_size = header.window_size
        self._opened()

    def _send_parameters(self, recoverable_ack_timeout: int, ack_timeout: int) -> None:
        header = ConnectionParametersHeader(
            recoverable_ack_timeout, ack_timeout, window_size=self.window_size
        )
        self._host.transmit(ConnectionParametersPacket.of(header))

    def _opened(self) -> None:
        if self._initialization is not None:
            self._initialization.cancel()
            self._initialization = None
        self._change(SessionState.OPEN)

    def _session_ack(self, packet: bytes) -> None:
        header = SessionHeader.decode(packet, len(packet) - SESSION_HEADER_SIZE)
        if not self._process_session_header(header):
            self._violation("message counts differ")

    def _message(self, kind: PacketKind, packet: bytes, message: PacketMessage) -> None:
        """Count a message, whatever becomes of it, then pass it to the host ([MS-MQQB] 3.1.5.8).

        Both counters come before the SessionHeader and before the check for duplicates (G22, G28).
        A message whose SessionHeader has other counts is passed on all the same, and the session
        closed behind it ([MS-MQMQ] 2.2.20.4).
        """
        header = None
        if packet[_SESSION_HEADER_AT] & _SESSION_HEADER:
            header = SessionHeader.decode(packet, len(packet) - SESSION_HEADER_SIZE)
        message.validate()
        self.session_active = True
        self.direct |= message.destination_queue_type is QueueFormatType.DIRECT
        self.message_received_count = (self.message_received_count + 1) & COUNTER
        if not self.withholds:
            self.unacked_received_msg_count += 1
        recoverable = None
        if packet[_DELIVERY_MODE_AT] & _DELIVERY_MODE:
            recoverable = (self.recoverable_message_received_count + 1) & COUNTER
            self.recoverable_message_received_count = recoverable
        counts_agree = header is None or self._process_session_header(header)
        if self.state is SessionState.CLOSED:
            return
        if self._ack_send is None and not self.withholds:
            self._start_ack_send(self.ack_wait_timeout // 2)
        self._host.message_received(kind, message, None if self.withholds else recoverable)
        if not counts_agree:
            self._violation("message counts differ")
        elif self.unacked_received_msg_count >= max(1, self.window_size // 2):
            self.send_session_ack()

    def count_messages(self, count: int, recoverable: int, *, direct: bool) -> None:
        """Count messages that the host has taken together, as `message_received` does with each.

        So many of them are recoverable, and have the next numbers; `direct` says whether any has
        a direct destination.
        """
        self.received_ack = self.session_active = True
        self.direct |= direct
        received = self.recoverable_message_received_count + recoverable
        self.recoverable_message_received_count = received & COUNTER
        acknowledged_at = max(1, self.window_size // 2)
        while count and self.state is not SessionState.CLOSED:
            step = max(1, min(count, acknowledged_at - self.unacked_received_msg_count))
            count -= step
            self.message_received_count = (self.message_received_count + step) & COUNTER
            self.unacked_received_msg_count += step
            if self.unacked_received_msg_count >= acknowledged_at:
                self.send_session_ack()
            elif self._ack_send is None:
                self._start_ack_send(self.ack_wait_timeout // 2)

    def persisted_many(self, numbers: range) -> None:
        """The same as `persisted` for recoverable messages with neighbouring numbers."""
        following = (self._persisted_recoverable + 1) & COUNTER
        if self._persisted_early or numbers.start & COUNTER != following:
            for number in numbers:
                self.persisted(number & COUNTER)
            return
        left = len(numbers)
        while left and self.state is not SessionState.CLOSED:
            step = max(1, min(left, _ACK_BITS - self._pending_recoverable))
            left -= step
            self._persist(step)

    def _persist(self, count: int) -> None:
        """Note that the next messages are on the disk."""
        pending = self._pending_recoverable
        self._persisted_recoverable = (self._persisted_recoverable + count) & COUNTER
        if self._pending_recoverable >= _ACK_BITS:
            self.send_session_ack()
        elif not pending and self._pending_recoverable:
            self._start_ack_send(self.recoverable_ack_send_timeout)

    def persisted(self, number: int) -> None:
        """Note that a recoverable message is on the disk, or refused for good ([MS-MQQB]
        3.1.5.8.7).

        The first one since the last acknowledgement shortens the Session Ack Send Timer; 32 are
        acknowledged at once.
        """
        if self.state is SessionState.CLOSED:
            return
        early, count = self._persisted_early, 0
        early.add(number)
        while (self._persisted_recoverable + count + 1) & COUNTER in early:
            count += 1
            early.discard((self._persisted_recoverable + count) & COUNTER)
        self._persist(count)

    @property
    def _pending_recoverable(self) -> int:
        """Recoverable messages on the disk that have not been acknowledged yet."""
        return (self._persisted_recoverable - self._acknowledged_recoverable) & COUNTER

    @property
    def withholds(self) -> bool:
        """Whether messages are not acknowledged any more."""
        return self._withheld_at is not None

    def withhold(self) -> None:
        """Acknowledge neither the message that is being taken, nor any behind it (G632).

        The peer keeps them, and sends them again in another session.
        """
        if self._withheld_at is None:
            self._withheld_at = (self.message_received_count - 1) & COUNTER
            self.unacked_received_msg_count -= 1

    # Acknowledgements of our messages

    def _process_session_header(self, header: SessionHeader) -> bool:
        """Take the peer's counts of ours ([MS-MQQB] 3.1.5.5); False if we lack any of its own."""
        in_flight = self.un_acked_message_count
        newly = (header.ack_sequence_number - self.message_sent_count + in_flight) & COUNTER
        if newly > in_flight:
            self._violation("acknowledgement of messages that were not sent")
            return True
        released = self._sent.take_counted(newly) + self._sent.take_persisted(header)
        if released:
            self._host.messages_acknowledged(released)
        if (
            header.user_msg_sequence_number != self.message_received_count
            or header.recoverable_msg_seq_number != self.recoverable_message_received_count
        ):
            return False
        self._restart_ack_wait()
        grown = header.window_size > self.received_window_size
        self.received_window_size = header.window_size
        if newly or released or grown:
            self._host.window_moved()
        return True

    # Sending

    def send(self, packet: bytes, token: object) -> None:
        """Send a message ([MS-MQQB] 3.1.7.1.3, .6); call it only when `can_send`.

        `token` comes back in `messages_acknowledged`. An acknowledgement that is nearly due rides
        along ([MS-MQQB] 3.1.7.11), but not with OrderAck and FinalAck.
        """
        self.send_many([packet], [token])

    def send_many(self, packets: Sequence[bytes], tokens: Sequence[object]) -> None:
        """Send messages, as `send` each; no more than there is `room` for."""
        octets = packets
        if self._acknowledgement_is_nearly_due() and may_carry_acknowledgement(packets[0]):
            self._count_sent(packets[:1], tokens[:1])
            first = with_session_header(packets[0], self._acknowledgement(self.window_size))
            packets, tokens = packets[1:], tokens[1:]
            octets = [first, *packets]
        self._count_sent(packets, tokens)
        self.session_active = True
        if self._ack_wait is None:
            self._start_ack_wait()
        self._host.transmit(b"".join(octets))

    def _count_sent(self, packets: Sequence[bytes], tokens: Sequence[object]) -> None:
        self.message_sent_count = (self.message_sent_count + len(packets)) & COUNTER
        last = self.recoverable_message_sent_count
        self.recoverable_message_sent_count = self._sent.add(packets, tokens, last)

    def _acknowledgement_is_nearly_due(self) -> bool:
        if self._ack_send is None or not self.unacked_received_msg_count:
            return False
        elapsed = self._clock.monotonic() - self._ack_send_started
        return elapsed * 4 > self._ack_send_duration * 3

    def send_session_ack(self) -> None:
        """Acknowledge all messages that can be acknowledged ([MS-MQQB] 3.1.6.4)."""
        self._send_acknowledgements(self.window_size)

    def pause(self) -> None:
        """Let the peer send one message at a time ([MS-MQQB] 3.1.7.13)."""
        if self.state is SessionState.OPEN:
            self._send_acknowledgements(1)
            self.session_active = False

    def _send_acknowledgements(self, window_size: int) -> None:
        while True:
            self._host.transmit(SessionAckPacket.of(self._acknowledgement(window_size)))
            if not self._pending_recoverable or self.state is SessionState.CLOSED:
                return

    def _acknowledgement(self, window_size: int) -> SessionHeader:
        """The SessionHeader of this moment; the messages in it count as acknowledged."""
        count = min(self._pending_recoverable, _ACK_BITS)
        first = (self._acknowledged_recoverable + 1) & COUNTER if count else 0
        self._acknowledged_recoverable = (self._acknowledged_recoverable + count) & COUNTER
        self.unacked_received_msg_count = 0
        if self._ack_send is not None:
            self._ack_send.cancel()
            self._ack_send = None
        if self._pending_recoverable:
            self._start_ack_send(self.recoverable_ack_send_timeout)
        received = self.message_received_count
        return SessionHeader(
            received if self._withheld_at is None else self._withheld_at,
            first,
            (1 << count) - 1,
            self.message_sent_count,
            self.recoverable_message_sent_count,
            window_size,
        )

    # Timers

    def _start_initialization(self) -> None:
        if self._initialization is not None:
            self._initialization.cancel()
        self._initialization = self._timers.call_later(
            self.settings.session_initialization, self._initialization_expired
        )

    def _initialization_expired(self) -> None:
        """[MS-MQQB] 3.1.6.6 Session Initialization Timer Event."""
        self._initialization = None
        self.close("the session was not initialized in time")

    def _start_cleanup(self) -> None:
        self._cleanup = self._timers.call_later(
            self.settings.session_cleanup, self._cleanup_expired
        )

    def _cleanup_expired(self) -> None:
        """[MS-MQQB] 3.1.6.2."""
        if not self.session_active and self.unfinished_bytes:
            self._violation("bad packet: one that does not end")
            return
        if not self.session_active and not self._sent:
            self.close("the session was idle")
            return
        self.session_active = False
        self._start_cleanup()

    def _start_ack_wait(self) -> None:
        duration = self.ack_wait_timeout * (2 if self.direct else 1)
        self._ack_wait = self._timers.call_later(duration, self._ack_wait_expired)

    def _restart_ack_wait(self) -> None:
        if self._ack_wait is not None:
            self._ack_wait.cancel()
            self._ack_wait = None
        if self._sent:
            self._start_ack_wait()

    def _ack_wait_expired(self) -> None:
        """[MS-MQQB] 3.1.6.3."""
        self._ack_wait = None
        waiting = bool(self._sent)
        if waiting and not self.received_ack:
            self.close("the peer acknowledges nothing")
            return
        self.received_ack = False
        if waiting:
            self._start_ack_wait()

    def _start_ack_send(self, duration: int) -> None:
        if self._ack_send is not None:
            self._ack_send.cancel()
        self._ack_send_started = self._clock.monotonic()
        self._ack_send_duration = duration
        self._ack_send = self._timers.call_later(duration, self._ack_send_expired)

    def _ack_send_expired(self) -> None:
        """[MS-MQQB] 3.1.6.4."""
        self._ack_send = None
        if self.unacked_received_msg_count or self._pending_recoverable:
            self.send_session_ack()


_TABLE: dict[tuple[SessionState, PacketKind], Callable[[Session, bytes], None] | None] = {
    (SessionState.WAITING_EC_MSG, PacketKind.ESTABLISH_CONNECTION): Session._establish_request,
    (SessionState.WAITING_ECR_MSG, PacketKind.ESTABLISH_CONNECTION): Session._establish_response,
    (SessionState.WAITING_CP_MSG, PacketKind.CONNECTION_PARAMETERS): Session._parameters_request,
    (SessionState.WAITING_CPR_MSG, PacketKind.CONNECTION_PARAMETERS): Session._parameters_response,
    (SessionState.OPEN, PacketKind.SESSION_ACK): Session._session_ack,
    (SessionState.OPEN, PacketKind.USER_MESSAGE): None,
    (SessionState.OPEN, PacketKind.ORDER_ACK): None,
    (SessionState.OPEN, PacketKind.FINAL_ACK): None,
}
"""Which packets a session takes in which state, messages being one case; others close it."""
