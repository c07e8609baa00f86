"""What the members of a cluster tell each other, and how far the primary may trim the log.

A member is known by the name of its node. What it tells is old by some seconds, and nothing rests
on it but the trimming: whoever finds a record trimmed that it needs says so, and joins anew.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from rpcqm.store.replication import LogBounds

FULL = 0.9
"""Of the largest size of the log: from there on nobody is waited for."""


@dataclass(frozen=True, slots=True)
class Member:
    """What a member has told last; `time` is when, in milliseconds since 1970, by its own clock."""

    node: str
    instance: str
    role: str
    incarnation: str
    epoch: int
    place: int
    """The number of the last record that it has written."""
    synced: int
    """The number of the last record that it has written and synced."""
    behind: int
    """Records that the log had besides, as far as this member saw."""
    time: int
    version: str
    files: str
    """A digest of keys and certificates, which all nodes have alike."""
    free: int
    """Octets that are free on its disk."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, octets: bytes) -> "Member | None":
        """None for what no member of this version tells; further words are passed over."""
        try:
            told = json.loads(octets)
            values = [told[field.name] for field in fields(cls)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        wanted = [field.type for field in fields(cls)]
        return cls(*values) if [type(each) for each in values] == wanted else None


def members_of(reports: dict[str, bytes]) -> list[Member]:
    """The members, by their names; what cannot be read is left out."""
    told = (Member.decode(octets) for _, octets in sorted(reports.items()))
    return [member for member in told if member is not None]


def first_to_keep(
    bounds: LogBounds, own: int, others: Iterable[int], keep_bytes: int, maximum_bytes: int
) -> int:
    """The number of the first record that is to stay in the log.

    `own` and `others` are what members have synced. `keep_bytes` stay in any case, counted by the
    mean size of a record. Once the log is almost full only what this node itself needs is kept.
    """
    count = bounds.last - bounds.first + 1
    if count <= 0 or bounds.size <= keep_bytes:
        return bounds.first
    kept = count * keep_bytes // bounds.size
    slowest = own if bounds.size >= FULL * maximum_bytes else min((own, *others))
    return max(bounds.first, min(slowest, bounds.last - kept) + 1)


def is_too_far_behind(member: Member, bounds: LogBounds) -> bool:
    """Whether the log has been trimmed behind what a member has, so that it has to join anew."""
    return member.place + 1 < bounds.first
