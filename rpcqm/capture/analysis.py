"""From records to calls: finds out what each connection carries."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rpcqm.capture.conversation.binary import (
    PORT,
    BinaryConversation,
    BinaryPacket,
    begins_packet,
)
from rpcqm.capture.conversation.call import (
    MC_MQSRM,
    MSMQ_BINARY,
    NCACN_IP_TCP,
    CapturedCall,
    Conversation,
)
from rpcqm.capture.conversation.http import begins_http, is_answer
from rpcqm.capture.conversation.knowledge import Knowledge
from rpcqm.capture.conversation.pdu_stream import CLIENT_TYPES, find_pdu, pdu_type_at
from rpcqm.capture.conversation.rpc import RpcConversation
from rpcqm.capture.conversation.smb import begins_session, begins_smb, is_of_smb
from rpcqm.capture.conversation.srmp import SrmpConversation, SrmpExchange
from rpcqm.capture.file.flow import Flow, FlowDirection
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.tcp import TcpReassembler
from rpcqm.capture.unsealing.accounts import UnsealingAccount

Exchange = CapturedCall | BinaryPacket | SrmpExchange
"""What is shown, exported and replayed: a call, a packet of the binary protocol, or a message over
HTTP with its answer."""

_ENOUGH = 16
"""Octets that tell what a connection carries: the header of a PDU, or of a packet."""
_HELD = 64
"""How many segments, and octets of each, are held until that is clear."""


class _Detector:
    """Holds what a connection sends until it is clear what that is."""

    def __init__(self, analysis: "Analysis", flow: Flow) -> None:
        self._analysis = analysis
        self._flow = flow
        self._held: list[tuple[FlowDirection, bytes, int, int]] = []
        for direction in (flow.forward, flow.backward):
            direction.take = self._taker(direction)

    def _taker(self, direction: FlowDirection) -> Callable[[bytes, int, int], None]:
        begin = bytearray()

        def take(data: bytes, time: int, offset: int) -> None:
            begin.extend(data[:_HELD])
            self._held.append((direction, data, time, offset))
            if len(begin) >= _ENOUGH:
                self._look(direction, bytes(begin), data)
                begin.clear()

        return take

    def _look(self, direction: FlowDirection, begin: bytes, data: bytes) -> None:
        kind = pdu_type_at(begin)
        if self._is_smb(begin, data):
            self._found_smb()
        elif kind >= 0:
            self._found_rpc(direction, kind)
        elif begins_packet(begin):
            self._found_binary(direction)
        elif begins_http(begin):
            self._found_http(direction, begin)
        elif not self._flow.whole and (at := find_pdu(data)) >= 0:
            # In the middle of a connection, and of a PDU.
            self._held = [(direction, data[at:], *self._held[-1][2:])]
            self._found_rpc(direction, pdu_type_at(data, at))
        elif self._flow.whole or len(self._held) > _HELD:
            self._forget()

    def _is_smb(self, begin: bytes, data: bytes) -> bool:
        flow = self._flow
        if flow.whole:
            return begins_smb(begin) or begins_session(begin, flow.server)
        # In the middle of a message anything may be, PDUs among it.
        return begins_smb(data) or is_of_smb(flow.client, flow.server)

    def _found_smb(self) -> None:
        flow, offset = self._flow, self._held[0][3]
        if not flow.whole and is_of_smb(flow.client, "") and not is_of_smb("", flow.server):
            flow.turn_round()
        reason = f"a connection to {flow.server} holds SMB, which is not read"
        self._analysis.problems.add("not read", offset, reason)
        self._held.clear()
        self._analysis.ignore(flow)

    def _forget(self) -> None:
        """Something else; a connection seen from its middle may still turn out to be ours."""
        self._held.clear()
        if self._flow.whole:
            self._analysis.ignore(self._flow)

    def _found_rpc(self, direction: FlowDirection, kind: int) -> None:
        flow = self._flow
        if not flow.whole and (kind in CLIENT_TYPES) != (direction is flow.forward):
            flow.turn_round()
        self._analysis.carries_rpc(flow, self._held[0][2])
        self._hand_on()

    def _found_binary(self, direction: FlowDirection) -> None:
        flow = self._flow
        if not flow.whole and flow.client.endswith(f":{PORT}"):
            flow.turn_round()
        self._analysis.carries_packets(flow, self._held[0][2])
        self._hand_on()

    def _found_http(self, direction: FlowDirection, begin: bytes) -> None:
        flow = self._flow
        if not flow.whole and is_answer(begin) == (direction is flow.forward):
            flow.turn_round()
        self._analysis.carries_http(flow)
        self._hand_on()

    def _hand_on(self) -> None:
        held, self._held = self._held, []
        for direction, data, time, offset in held:
            direction.take(data, time, offset)


class Analysis:
    """Takes records, hands on calls and packets as they are complete.

    `opened` is told of each conversation once it is clear what it carries.
    """

    def __init__(
        self,
        emit: Callable[[Exchange], None],
        problems: Problems,
        accounts: Sequence[UnsealingAccount] = (),
        opened: Callable[[Conversation], None] | None = None,
    ) -> None:
        self.problems = problems
        self.conversations = 0
        self._emit = emit
        self._accounts = accounts
        self._opened = opened
        self._knowledge = Knowledge(problems)
        self.tcp = TcpReassembler(self._begin, problems)

    def _begin(self, flow: Flow) -> None:
        _Detector(self, flow)

    def ignore(self, flow: Flow) -> None:
        """The flow carries something else."""
        for direction in (flow.forward, flow.backward):
            direction.take = _nothing

    def _conversation(self, flow: Flow, protocol: str, time: int) -> Conversation:
        self.conversations += 1
        made = Conversation(self.conversations, flow.client, flow.server, protocol, time)
        if self._opened is not None:
            self._opened(made)
        return made

    def carries_rpc(self, flow: Flow, time: int) -> None:
        conversation = self._conversation(flow, NCACN_IP_TCP, time)
        rpc = RpcConversation(conversation, self._knowledge, self._accounts, self._emit)
        flow.forward.take = rpc.from_client.take
        flow.backward.take = rpc.from_server.take
        flow.carries = True
        flow.forward.gap = lambda count, time, offset: rpc.gap(True, count, time, offset)
        flow.backward.gap = lambda count, time, offset: rpc.gap(False, count, time, offset)
        flow.finished = rpc.finish
        self.follow(flow, rpc)

    def follow(self, flow: Flow, rpc: RpcConversation) -> None:
        """Called when a connection is found to carry RPC; subclasses follow it."""

    def carries_packets(self, flow: Flow, time: int) -> None:
        conversation = self._conversation(flow, MSMQ_BINARY, time)
        packets = BinaryConversation(conversation, self.problems, self._emit)
        flow.forward.take = packets.from_client.take
        flow.backward.take = packets.from_server.take
        flow.carries = True
        flow.forward.gap = packets.from_client.gap
        flow.backward.gap = packets.from_server.gap

    def carries_http(self, flow: Flow) -> None:
        """HTTP may carry anything; there is a conversation once it is one of [MC-MQSRM]."""

        def open_conversation(time: int) -> Conversation:
            return self._conversation(flow, MC_MQSRM, time)

        http = SrmpConversation(open_conversation, self.problems, self._emit).http
        flow.forward.take = http.from_client.take
        flow.backward.take = http.from_server.take
        flow.forward.gap = http.from_client.gap
        flow.backward.gap = http.from_server.gap
        flow.finished = http.finish

    def feed(self, record: Record) -> None:
        self.tcp.feed(record)

    def finish(self) -> None:
        """The capture is over."""
        self.tcp.finish()


def _nothing(data: bytes, time: int, offset: int) -> None:
    """Traffic of no interest."""


def analyse(
    path: Path,
    emit: Callable[[Exchange], None],
    problems: Problems,
    accounts: Sequence[UnsealingAccount] = (),
    opened: Callable[[Conversation], None] | None = None,
) -> Analysis:
    """Read a whole capture; raises CaptureError and OSError as `read_records` does."""
    analysis = Analysis(emit, problems, accounts, opened)
    feed = analysis.tcp.feed
    for record in read_records(path, problems):
        feed(record)
    analysis.finish()
    return analysis
