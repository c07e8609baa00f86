"""Reads the headers of many frames at once: which are PDUs of ordinary calls, and of whom."""

from dataclasses import dataclass

import numpy as np

from rpcqm.capture.columnar.packets import PacketPlaces, packet_places
from rpcqm.capture.columnar.record_batch import Array, RecordBatch, gather
from rpcqm.capture.columnar.texts import codes
from rpcqm.capture.file.flow import reversed_key
from rpcqm.capture.frames.numbers import OTHER_PROTOCOLS, TCP, UDP, UNREAD_PORTS
from rpcqm.capture.frames.steps import numbers_of

MASK = 0xFFFFFFFF

_ENDS = 7
_FRAGMENT = 0x3FFF
_HEADERS, _HEADERS_6 = 40, 44
_PDU, _FAULT_PDU = 24, 28
_REQUEST, _RESPONSE, _FAULT = 0, 2, 3
_WHOLE = 3
_LITTLE_ENDIAN = 0x10

_IP_AND_TCP = {
    "version": ("u1", 0),
    "total": (">u2", 2),
    "fragment": (">u2", 6),
    "protocol": ("u1", 9),
    "addresses": ("<u8", 12),
    "ports": ("<u4", 20),
    "source": (">u2", 20),
    "target": (">u2", 22),
    "seq": (">u4", 24),
    "ack": (">u4", 28),
    "words": ("u1", 32),
    "flags": ("u1", 33),
}
_IP_6 = {"protocol": ("u1", 6), "source": (">u2", 40), "target": (">u2", 42)}
_IS_IDLE = np.isin(np.arange(256), sorted(OTHER_PROTOCOLS))
_TUNNEL_PORTS = np.array(sorted({*numbers_of("port"), *UNREAD_PORTS}))
"""Ports of UDP at which there is something to be read, or told."""
_PDU_HEAD = np.dtype(
    {
        "names": ["version", "kind", "flags", "drep", "length", "auth", "call", "context", "opnum"],
        "formats": ["<u2", "u1", "u1", "<u4", "<u2", "<u2", "<u4", "<u2", "<u2"],
        "offsets": [0, 2, 3, 4, 8, 10, 12, 20, 22],
        "itemsize": _FAULT_PDU,
    }
)


@dataclass(slots=True)
class Segments:
    """Of each record of a batch: `regular` ones are whole PDUs of calls in clear.

    `idle` records change nothing; `keyed` ones are TCP segments of IPv4 that are neither, and
    `barriers` may belong to any connection. `payload` is where in the buffer a PDU begins;
    what follows it is known of regular records only.
    """

    regular: Array
    idle: Array
    keyed: Array
    barriers: Array
    addresses: Array
    ports: Array
    seq: Array
    ack: Array
    length: Array
    payload: Array
    kind: Array
    call: Array
    context: Array
    opnum: Array


@dataclass(slots=True)
class TcpHeaders:
    """The headers of frames: `sound` ones are TCP segments over IPv4 that are not in pieces.

    Of these the `calm` ones begin and end nothing, the `idle` ones change nothing at all, `whole`
    ones were captured in full. `harmless` frames are certainly not TCP over IPv4, and `empty` ones
    nothing that is read or told.
    """

    head: Array
    sound: Array
    calm: Array
    idle: Array
    harmless: Array
    empty: Array
    whole: Array
    length: Array
    payload: Array


def tcp_headers(records: RecordBatch) -> TcpHeaders | None:
    """The headers of the frames of a batch; None if there are too few octets."""
    if len(records.buffer) < 2 * _HEADERS_6:
        return None
    places = packet_places(records)
    inside, head = _heads(records, places, 4, _IP_AND_TCP, _HEADERS)
    unbroken = inside & (head["version"] == 0x45) & (head["fragment"] & _FRAGMENT == 0)
    tcp = unbroken & (head["protocol"] == TCP)
    empty = places.empty | (unbroken & _carries_nothing(head))
    harmless = empty
    if (places.version == 6).any():
        inside, head_6 = _heads(records, places, 6, _IP_6, _HEADERS_6)
        empty = empty | (inside & _carries_nothing(head_6))
        harmless = empty | (inside & (head_6["protocol"] == TCP))
    return _tcp(records, head, tcp, places.at, harmless, empty)


def segments(records: RecordBatch) -> Segments | None:
    """The segments of a record batch; None if no frame of it can be regular."""
    found = tcp_headers(records)
    if found is None:
        return None
    length, payload, head = found.length, found.payload, found.head
    regular = found.calm & found.whole & (length >= _PDU)
    regular &= payload <= len(records.buffer) - _FAULT_PDU
    if not regular.any():
        return None
    pdu = gather(records.buffer, np.where(regular, payload, 0), _FAULT_PDU).view(_PDU_HEAD)
    regular &= _is_call(pdu, length)
    return Segments(
        regular,
        found.idle,
        found.sound & ~regular & ~found.idle,
        ~(found.sound | found.harmless),
        head["addresses"],
        head["ports"],
        head["seq"].astype(np.int64),
        head["ack"].astype(np.int64),
        length,
        payload,
        pdu["kind"],
        pdu["call"],
        pdu["context"],
        pdu["opnum"],
    )


def _heads(
    records: RecordBatch,
    places: PacketPlaces,
    version: int,
    fields: dict[str, tuple[str, int]],
    size: int,
) -> tuple[Array, Array]:
    """Which records have a packet of a version with so many octets, and fields of these."""
    made = np.dtype(
        {
            "names": list(fields),
            "formats": [code for code, _ in fields.values()],
            "offsets": [at for _, at in fields.values()],
            "itemsize": size,
        }
    )
    begin = records.begin + places.at
    inside = (places.version == version) & (records.captured >= places.at + size)
    inside &= begin <= len(records.buffer) - size
    return inside, gather(records.buffer, np.where(inside, begin, 0), size).view(made)


def _carries_nothing(head: Array) -> Array:
    """Packets that certainly carry no connection, and no tunnel."""
    protocol = head["protocol"]
    datagram = protocol == UDP
    if datagram.any():
        datagram &= ~np.isin(head["source"], _TUNNEL_PORTS) & ~np.isin(
            head["target"], _TUNNEL_PORTS
        )
    return np.asarray(datagram | _IS_IDLE[protocol])


def _tcp(
    records: RecordBatch, head: Array, tcp: Array, at: Array, harmless: Array, empty: Array
) -> TcpHeaders:
    total, start = head["total"].astype(np.int64), (head["words"] >> 2 & 0x3C).astype(np.int64)
    length = total - 20 - start
    # Segmentation by the network card leaves 0 as the total length.
    sound = tcp & (total > 0) & (start >= 20) & (length >= 0)
    calm = sound & (head["flags"] & _ENDS == 0)
    payload = records.begin + at + 20 + start
    whole, idle = records.captured >= at + total, calm & (length == 0)
    return TcpHeaders(head, sound, calm, idle, harmless, empty, whole, length, payload)


def _is_call(pdu: Array, length: Array) -> Array:
    """Whether a segment is one PDU that is a whole request, response or fault in clear."""
    kind = pdu["kind"]
    good = (pdu["version"] & 0xFEFF == 5) & (pdu["flags"] == _WHOLE)
    good &= (pdu["drep"] == _LITTLE_ENDIAN) & (pdu["auth"] == 0) & (pdu["length"] == length)
    good &= (kind == _REQUEST) | (kind == _RESPONSE) | ((kind == _FAULT) & (length >= _FAULT_PDU))
    return np.asarray(good)


@dataclass(slots=True)
class Directions:
    """The directions of some records: `code` is the direction's number, `flow` its flow's number.

    `keys` are the keys of directions by number, `other` the numbers of the opposite ones (-1
    where the opposite direction sends nothing in these records).
    """

    code: Array
    flow: Array
    keys: list[bytes]
    other: Array


def directions(addresses: Array, ports: Array) -> Directions | None:
    """The directions of TCP segments; None if two of them have one hash."""
    # Odd factors with well mixed bits: two pairs with one product are improbable, and looked for.
    mixed = addresses * np.uint64(0x9E3779B97F4A7C15) ^ ports.astype(np.uint64) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    code, _ = codes(mixed)
    first = np.empty(int(code.max()) + 1, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    own_address, own_ports = addresses[first], ports[first]
    if (addresses != own_address[code]).any() or (ports != own_ports[code]).any():
        return None
    pairs = zip(own_address.tolist(), own_ports.tolist(), strict=True)
    keys = [a.to_bytes(8, "little") + p.to_bytes(4, "little") for a, p in pairs]
    numbers = {key: number for number, key in enumerate(keys)}
    other = np.array([numbers.get(reversed_key(key), -1) for key in keys], np.int64)
    own = np.arange(len(keys))
    flow = np.where(other >= 0, np.minimum(own, other), own)
    return Directions(code, flow[code], keys, other)
