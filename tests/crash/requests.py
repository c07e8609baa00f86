"""The process that answers requests and peers until it dies, and says what they were promised.

Usage: python -m tests.crash.requests DIRECTORY SEED TURNS [--careful] [--die STEP:COUNT]

Clients send and receive by RPC, and another queue manager over a session; most of it is like what
came before, so that templates carry it out, unless `--careful`. DIRECTORY/acknowledged gets a line
`begun NAME` when a message is under way, `done NAME` when its sender has been told, `ending NAME`
and `ended NAME` for the receive that removes it. The name of a message is `sender:number`; the
queue manager is in DIRECTORY/bob-0, and what templates have done is written beside DIRECTORY.
"""

import argparse
import json
import os
from pathlib import Path
from random import Random

from rpcqm.base.log import configure
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.enums import DeliveryGuarantee
from rpcqm.codec.packet.internal import SessionAckPacket
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.rpc.interface_registry import NCALRPC
from tests.crash.workload import die, die_at
from tests.support.binary.binary_network import Node, Simulation
from tests.support.binary.binary_peer import PEER, ScriptedPeer
from tests.support.rpc.callers import ALICE, CallServer, PendingCall
from tests.support.rpc.dependent_client import SEND_ACCESS, Client, served_clients
from tests.support.rpc.remote_reader import ACK, Reader, body_of, served_remote_read

QUEUES = ("orders", "stream")
CLIENTS = 2
PEER_SENDER, SEQUENCE_SENDER = 2, 3
"""Senders beyond the clients: a peer, and its sequence into the transactional queue."""
SENT_TIME = 1_750_000_000
ACKNOWLEDGED_WITHIN = 600
"""Milliseconds after which the peer is told, at the latest."""


def body_of_name(name: str) -> bytes:
    """A body of many sizes, always the same one for a name."""
    return name.encode().ljust(Random(name).choice([20, 300, 6_000]), b".")


def name_in(body: bytes) -> str:
    return body.rstrip(b".").decode()


def packet_of(sender: int, number: int) -> bytes:
    """What the peer sends: it sends it again after each crash."""
    queue = QUEUES[sender == SEQUENCE_SENDER]
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(rf"DIRECT=OS:bob\private$\{queue}"),
        identifier=MessageIdentifier(PEER, sender << 24 | number),
        sent_time=SENT_TIME,
        body=body_of_name(f"{sender}:{number}"),
        delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
    )
    if sender == SEQUENCE_SENDER:
        attributes.transaction_identifier = number
        attributes.transactional_message_sequence_identifier = TxSequenceID(1, 7)
        attributes.transaction_sequence_number = number
        attributes.transaction_previous_sequence_number = number - 1
    return build_user_message(attributes)


class Life:
    """A queue manager with its clients, until the process ends."""

    def __init__(self, directory: Path, random: Random, careful: bool) -> None:
        self._random = random
        self._said = os.open(directory / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._simulation = Simulation(directory)
        self.bob: Node = self._simulation.node("bob")
        self.bob.speed.turn.is_on = not careful
        for name in QUEUES:
            self.bob.create(name, transactional=name == "stream")
        self._peer = ScriptedPeer(self.bob)
        servers = served_clients(self.bob), served_remote_read(self.bob)
        for server in servers:
            server.dispatcher.before_close = self.bob.store.carry_out_first
        self._connect(*servers)
        self._numbers = [0] * 4
        self._reads: list[tuple[int, PendingCall]] = []
        self._request = 0
        self._unacknowledged: dict[int, str] = {}
        """What the peer has sent, by its number among the recoverable messages of the session."""

    def _connect(self, sending: CallServer, reading: CallServer) -> None:
        queue = self.bob.find()
        self._clients = [Client(sending.connect(ALICE, transport=NCALRPC)) for _ in range(CLIENTS)]
        self._handles = [each.open(queue, SEND_ACCESS)[0] for each in self._clients]
        self._reader = Reader(reading.connect(ALICE))
        self._reading = self._reader.open(queue)

    def say(self, event: str, name: str) -> None:
        os.write(self._said, f"{event} {name}\n".encode())

    def turn(self) -> None:
        """What comes in one turn of the loop, and the answers to it."""
        sends = [
            (name, self._send(sender, name))
            for sender in range(CLIENTS)
            for name in self._names(sender, self._random.randrange(5))
        ]
        self._deliver(self._random.choice([0, 0, 4, 9]))
        ends = self._end_reads()
        self._start_reads(self._random.randrange(4))
        self.bob.settle()
        for caller in (*(each.caller for each in self._clients), self._reader.caller):
            caller.settle()
        for name, call in sends:
            assert call.result().result == 0
            self.say("done", name)
        self._hear()
        for name, call in ends:
            assert call.result().result == 0
            self.say("ended", name)

    def _names(self, sender: int, count: int) -> list[str]:
        first = self._numbers[sender] + 1
        self._numbers[sender] += count
        names = [f"{sender}:{number}" for number in range(first, first + count)]
        for name in names:
            self.say("begun", name)
        return names

    def _send(self, sender: int, name: str) -> PendingCall:
        return self._clients[sender].start_send(self._handles[sender], body_of_name(name))

    def _deliver(self, count: int) -> None:
        """What a peer sends in one read."""
        names = [*self._names(PEER_SENDER, count), *self._names(SEQUENCE_SENDER, count // 2)]
        packets = [packet_of(*map(int, name.split(":"))) for name in names]
        first = self._peer.sent_recoverable + 1
        self._unacknowledged.update(enumerate(names, first))
        data = self._peer.counting([(packet, True) for packet in packets])
        if data:
            self._peer.feed(data)

    def _hear(self) -> None:
        """What the peer is told now and then: a message is acknowledged when it is durable."""
        if self._random.random() < 0.5:
            self._simulation.advance(ACKNOWLEDGED_WITHIN)
        answers, self._peer.answers = self._peer.answers, []
        for answer in answers:
            if identify_packet(answer) is not PacketKind.SESSION_ACK:
                continue
            header = SessionAckPacket.decode(answer).session_header
            for bit in range(32):
                if header.recoverable_msg_ack_flags >> bit & 1:
                    number = header.recoverable_msg_ack_seq_number + bit
                    self.say("done", self._unacknowledged.pop(number))

    def _start_reads(self, count: int) -> None:
        for _ in range(count):
            self._request += 1
            call = self._reader.start(self._reading, request_id=self._request)
            self._reads.append((self._request, call))

    def _end_reads(self) -> list[tuple[str, PendingCall]]:
        """End what was read in the turn before, as far as there was a message."""
        ends = []
        for request, read in self._reads:
            if read.result().result != 0:
                continue
            name = name_in(body_of(read.result()))
            self.say("ending", name)
            call = self._reader.caller.send(
                "R_EndReceive", phContext=self._reading, dwAck=ACK, dwRequestId=request
            )
            ends.append((name, call))
        self._reads.clear()
        return ends


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("turns", type=int)
    parser.add_argument("--careful", action="store_true")
    parser.add_argument("--die", metavar="STEP:COUNT")
    arguments = parser.parse_args()
    configure("critical")
    life = Life(arguments.directory, Random(arguments.seed), arguments.careful)
    if arguments.die:
        step, number = arguments.die.rsplit(":", 1)
        die_at(step, int(number))
    for _ in range(arguments.turns):
        life.turn()
    counted = life.bob.store.metrics.of("templates")
    arguments.directory.with_name("counted").write_text(json.dumps(counted))
    die()


if __name__ == "__main__":
    main()
