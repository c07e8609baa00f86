"""How a server's side of a session of the binary protocol is compared, packet by packet.

How acknowledgements are spread over packets depends on timers. So what they acknowledge in all is
compared: for each message of the client whether it arrived, for each sequence its last OrderAck.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.binary_progress import (
    at,
    final_ack_of,
    kind_of,
    order_ack_of,
    session_header,
)
from rpcqm.capture.replay.binary import BinaryPlayer, ReplayPeer, is_message
from rpcqm.capture.replay.outcome import DIFFERENT, SAME, Outcome
from rpcqm.capture.replay.policy import Comparison, Difference, packet_parts
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.fields import DELIVERY_MODE
from rpcqm.codec.packet.patch import without_session_header
from rpcqm.codec.packet.user_message import UserMessage

_MORE = "the capture ended before it was acknowledged"
_TIMERS = "how many acknowledgements come depends on timers"
_ANEW = "acknowledgements of the client are made anew"
_BODY = "MessagePropertiesHeader.MessageBody"
_DELIVERY_MODE_AT, _DELIVERY_MODE = DELIVERY_MODE
_OPENING = (PacketKind.ESTABLISH_CONNECTION, PacketKind.CONNECTION_PARAMETERS)


def compare(players: Iterable[BinaryPlayer], comparison: Comparison) -> list[Outcome]:
    """Judge what was played: the packets of clients, and what the server said by itself."""
    found: list[Outcome] = []
    peers: dict[ReplayPeer, None] = {}
    for player in players:
        found += player.outcomes
        if not player.reason:
            found += _session(player, comparison)
            peers[player.peer] = None
    for peer in peers:
        found += _messages(peer, comparison)
    return found


def _session(player: BinaryPlayer, comparison: Comparison) -> Iterator[Outcome]:
    comparison.ignore(_ANEW, player.acknowledgements)
    answers = {kind_of(each): each for each in reversed(player.live)}
    captured = {kind_of(each): each for each in reversed(player.captured)}
    count = recoverable = 0
    for outcome in player.outcomes:
        packet = cast(BinaryPacket, outcome.call)
        if outcome.reason:
            continue
        kind = kind_of(packet)
        if kind in _OPENING:
            pair = captured.get(kind), answers.get(kind)
            outcome.differences = _answers(packet.name, *pair, comparison)
        else:
            count += 1
            recoverable += bool(packet.octets[_DELIVERY_MODE_AT] & _DELIVERY_MODE)
            differences = _acknowledgements(player, packet, count, recoverable, comparison)
            outcome.differences = list(differences)
        outcome.verdict = DIFFERENT if outcome.differences else SAME
    yield from _last_header(player, comparison)


def _answers(
    name: str, captured: BinaryPacket | None, live: BinaryPacket | None, comparison: Comparison
) -> list[Difference]:
    """The fields of two packets that answer the same one."""
    if captured is None:
        return []
    if live is None:
        return [Difference(f"{name}.#answer", "answered", "no answer", "exact")]
    return comparison.compare_fields(_fields(captured, name), _fields(live, name))


def _fields(packet: BinaryPacket, name: str) -> dict[str, object]:
    """The fields of a packet, without acknowledgements that ride on it."""
    fields = dict(packet_parts(without_session_header(packet.octets), name))
    acknowledged = order_ack_of(packet) or final_ack_of(packet)
    if acknowledged is not None:
        fields.pop(f"{name}.{_BODY}", None)
        for part in acknowledged.__slots__:
            value = getattr(acknowledged, part)
            fields[f"{name}.{part}"] = getattr(value, "value", value)
    return fields


def _acknowledgements(
    player: BinaryPlayer, packet: BinaryPacket, count: int, recoverable: int, comparison: Comparison
) -> Iterator[Difference]:
    """Whether the server has a message: arrived, on its disk, in order."""
    then, now = at(player.milestones, None), player.progress
    pairs = {"SessionAck.arrived": (then.acknowledged >= count, now.acknowledged >= count)}
    if packet.octets[_DELIVERY_MODE_AT] & _DELIVERY_MODE:
        stored = then.recoverable >= recoverable, now.recoverable >= recoverable
        pairs["SessionAck.on_disk"] = stored
    header = UserMessage(packet.octets).transaction_header
    if header is not None:
        sequence, number = header.tx_sequence_id.value, header.tx_sequence_number
        peer = player.peer
        both = at(peer.milestones, None).orders, peer.progress.orders
        captured, live = (each.get(sequence, 0) >= number for each in both)
        pairs["OrderAck.in_order"] = captured, live
    for name, (captured, live) in pairs.items():
        if captured and not live:
            because = f"no: {player.closed_because}" if player.closed_because else "no"
            yield Difference(f"{packet.name}.{name}", "yes", because, "exact")
        elif live and not captured:
            comparison.ignore(_MORE)


def _messages(peer: ReplayPeer, comparison: Comparison) -> Iterator[Outcome]:
    """The server's messages, one after the other, and the last OrderAck of each sequence."""
    orders = [_last_orders(each) for each in (peer.captured, peer.live)]
    acks = sum(order_ack_of(each) is not None for each in peer.captured)
    comparison.ignore(_TIMERS, acks - len(orders[0]))
    for sequence, captured in orders[0].items():
        yield _judged(captured, orders[1].get(sequence), comparison)
    ours, theirs = (list(filter(is_message, each)) for each in (peer.captured, peer.live))
    for index, captured in enumerate(ours):
        yield _judged(captured, theirs[index] if index < len(theirs) else None, comparison)
    for further in theirs[len(ours) :]:
        outcome = Outcome(further, DIFFERENT)
        outcome.differences.append(
            Difference(f"{further.name}.#message", "no message", "a message", "exact")
        )
        yield outcome


def _judged(captured: BinaryPacket, live: BinaryPacket | None, comparison: Comparison) -> Outcome:
    differences = _answers(captured.name, captured, live, comparison)
    return Outcome(captured, DIFFERENT if differences else SAME, "", differences)


def _last_orders(packets: list[BinaryPacket]) -> dict[int, BinaryPacket]:
    found = {}
    for packet in packets:
        acknowledged = order_ack_of(packet)
        if acknowledged is not None:
            found[acknowledged.tx_sequence_id.value] = packet
    return found


def _last_header(player: BinaryPlayer, comparison: Comparison) -> Iterator[Outcome]:
    """All SessionHeaders of the server, put together."""
    last = [each for each in player.captured if session_header(each) is not None]
    if not last:
        return
    then, now = at(player.milestones, None), player.progress
    outcome = Outcome(last[-1], SAME)
    for name, captured, live in (
        ("AckSequenceNumber", then.acknowledged, now.acknowledged),
        ("RecoverableMsgAckSeqNumber", then.recoverable, now.recoverable),
        ("WindowSize", then.window_size, now.window_size),
    ):
        if live > captured and name != "WindowSize":
            comparison.ignore(_MORE)
        elif live != captured:
            difference = Difference(f"SessionHeader.{name}", captured, live, "exact")
            outcome.differences.append(difference)
    outcome.verdict = DIFFERENT if outcome.differences else SAME
    yield outcome
