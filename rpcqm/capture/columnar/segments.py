"""Reads the headers of many frames at once: which are PDUs of ordinary calls, and of whom."""

from dataclasses import dataclass

import numpy as np

from rpcqm.capture.columnar.record_batch import Array, RecordBatch, gather
from rpcqm.capture.columnar.texts import codes
from rpcqm.capture.file.record import LinkType
from rpcqm.capture.file.tcp import reversed_key

MASK = 0xFFFFFFFF

_NONE = -1
_PLACES = {
    LinkType.ETHERNET: (12, 14),
    LinkType.LINUX_SLL: (14, 16),
    LinkType.LINUX_SLL2: (0, 20),
    LinkType.RAW: (_NONE, 0),
    LinkType.RAW_BSD: (_NONE, 0),
    LinkType.IPV4: (_NONE, 0),
}
"""Where the EtherType and the IPv4 header are, by link type."""
_IPV4 = 0x0800
_TAGS = (0x8100, 0x88A8, 0x9100)
_TCP = 6
_ENDS = 7
_FRAGMENT = 0x3FFF
_HEADERS = 40
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
    "seq": (">u4", 24),
    "ack": (">u4", 28),
    "words": ("u1", 32),
    "flags": ("u1", 33),
}
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

    Of these the `calm` ones begin and end nothing, the `idle` ones change nothing at all;
    `harmless` ones are certainly not TCP over IPv4, `whole` ones were captured in full.
    """

    head: Array
    sound: Array
    calm: Array
    idle: Array
    harmless: Array
    whole: Array
    length: Array
    payload: Array


def tcp_headers(records: RecordBatch) -> TcpHeaders | None:
    """The headers of the frames of a batch; None if their link type is not read in columns."""
    link = int(records.link[0])
    if link not in _PLACES or len(records.buffer) < 128:
        return None
    type_at, ip_at = _PLACES[LinkType(link)]
    inside = records.captured >= ip_at + _HEADERS
    inside &= records.begin <= len(records.buffer) - ip_at - _HEADERS
    inside &= records.link == link
    head = _head(records, np.where(inside, records.begin, 0), type_at, ip_at)
    ipv4 = inside & (head["version"] == 0x45)
    if type_at >= 0:
        ipv4 &= head["type"] == _IPV4
    unbroken = ipv4 & (head["fragment"] & _FRAGMENT == 0)
    tcp = unbroken & (head["protocol"] == _TCP)
    harmless = inside & _harmless(head, unbroken, tcp, type_at)
    if type_at >= 0:
        harmless |= _short_and_harmless(records, ~inside, type_at)
    return _tcp(records, head, tcp, ip_at, harmless)


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


def _head(records: RecordBatch, begin: Array, type_at: int, ip_at: int) -> Array:
    places = {name: (code, ip_at + at) for name, (code, at) in _IP_AND_TCP.items()}
    if type_at >= 0:
        places["type"] = (">u2", type_at)
    made = np.dtype(
        {
            "names": list(places),
            "formats": [code for code, _ in places.values()],
            "offsets": [at for _, at in places.values()],
            "itemsize": ip_at + _HEADERS,
        }
    )
    return gather(records.buffer, begin, made.itemsize).view(made)


def _harmless(head: Array, whole: Array, tcp: Array, type_at: int) -> Array:
    """Frames that are certainly not TCP over IPv4."""
    other = whole & ~tcp
    if type_at < 0:
        return other
    kind = head["type"]
    return np.asarray(other | ((kind != _IPV4) & ~np.isin(kind, _TAGS)))


def _short_and_harmless(records: RecordBatch, short: Array, type_at: int) -> Array:
    """Frames too short for TCP of which the EtherType says the same (ARP)."""
    found = np.zeros(len(records), bool)
    for index in np.flatnonzero(short).tolist():
        at = int(records.begin[index]) + type_at
        there = int(records.captured[index]) >= type_at + 2
        kind = int.from_bytes(records.buffer[at : at + 2], "big")
        found[index] = there and kind != _IPV4 and kind not in _TAGS
    return found


def _tcp(records: RecordBatch, head: Array, tcp: Array, ip_at: int, harmless: Array) -> TcpHeaders:
    total, start = head["total"].astype(np.int64), (head["words"] >> 2 & 0x3C).astype(np.int64)
    length = total - 20 - start
    # Segmentation by the network card leaves 0 as the total length.
    sound = tcp & (total > 0) & (start >= 20) & (length >= 0)
    calm = sound & (head["flags"] & _ENDS == 0)
    payload = records.begin + (ip_at + 20) + start
    whole = records.captured >= ip_at + total
    return TcpHeaders(head, sound, calm, calm & (length == 0), harmless, whole, length, payload)


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
