"""The reports of a cluster's members, and how far the primary may trim the log.

A member is identified by the name of its node. Reports are some seconds old, and only the trimming
depends on them: a node that needs a trimmed record says so, and joins anew.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from rpcqm.store.replication import LogBounds

FULL = 0.9
"""The share of the log's largest size from which on nobody is waited for."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member's last report; `time` is when, in milliseconds since 1970, by its own clock."""

    node: str
    instance: str
    role: str
    incarnation: str
    epoch: int
    place: int
    """The number of the last record that it has applied."""
    synced: int
    """The number of the last record that it has applied and synced."""
    behind: int
    """The number of further records in the log, as far as the member saw."""
    time: int
    version: str
    files: str
    """A digest of keys and certificates, which must be equal on all nodes."""
    free: int
    """Free octets on its disk."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, octets: bytes) -> "Member | None":
        """None unless the octets are a report of this version; further members are ignored."""
        try:
            told = json.loads(octets)
            values = [told[field.name] for field in fields(cls)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        wanted = [field.type for field in fields(cls)]
        return cls(*values) if [type(each) for each in values] == wanted else None


def members_of(reports: dict[str, bytes]) -> list[Member]:
    """The members by their names, without unreadable reports."""
    told = (Member.decode(octets) for _, octets in sorted(reports.items()))
    return [member for member in told if member is not None]


def first_to_keep(
    bounds: LogBounds, own: int, others: Iterable[int], keep_bytes: int, maximum_bytes: int
) -> int:
    """The number of the first record that stays in the log.

    `own` and `others` are the synced places of members. `keep_bytes` stay in any case, counted by
    the mean size of a record. Once the log is almost full only the records that this node itself
    needs are kept.
    """
    count = bounds.last - bounds.first + 1
    if count <= 0 or bounds.size <= keep_bytes:
        return bounds.first
    kept = count * keep_bytes // bounds.size
    slowest = own if bounds.size >= FULL * maximum_bytes else min((own, *others))
    return max(bounds.first, min(slowest, bounds.last - kept) + 1)


def is_too_far_behind(member: Member, bounds: LogBounds) -> bool:
    """Whether the log has been trimmed behind a member's place, so that it has to join anew."""
    return member.place + 1 < bounds.first
