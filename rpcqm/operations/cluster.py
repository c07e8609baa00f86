"""The state of a node of a cluster, and the orders that it takes (docs/failover.md)."""

import enum
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.operations.audit import note
from rpcqm.qm.access import require_administrator, require_observer


class ClusterRole(enum.StrEnum):
    """The role of a node."""

    WAITING = "waiting"
    """It has no log yet: the servers do not answer."""
    STANDBY = "standby"
    """It follows the log."""
    TAKING_OVER = "taking over"
    """The log is its own, and the doors are not open yet."""
    PRIMARY = "primary"
    """It is the queue manager."""


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A node, by its last record in the log."""

    node: str
    role: str
    place: int
    """The number of its last record."""
    synced: int
    lag: int
    """Records that it lacks."""
    lag_milliseconds: int
    """For how long the log has had what it lacks, as far as was seen."""
    age: int
    """Milliseconds since its last new record."""
    ahead: int
    """Milliseconds by which its clock is ahead of the one here, at least; negative if behind."""
    version: str
    files: str
    """A digest of keys and certificates, which all nodes have alike."""
    free: int
    lost: bool
    """Whether the log was trimmed behind what it has, so that it has to join anew."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A node and the log, as this node sees both; times of day are milliseconds since 1970."""

    role: ClusterRole
    node: str
    instance: str
    """The random identifier of its data directory, in hexadecimal digits."""
    log: str
    """The name of the log on its servers."""
    incarnation: str
    """The log's own identifier; empty before the node has any."""
    epoch: int
    """Of the last record here."""
    place: int
    """The number of the last record here."""
    log_end: int
    """The number of the log's last record, as far as was seen; it may be old."""
    log_first: int
    log_bytes: int
    active: str
    """The node that has taken over last, by what was read; empty if nobody has."""
    since: int
    """When the node's role began."""
    last_takeover: int
    """0 if there was none."""
    silence: int
    """Milliseconds since a record came, or was last acknowledged."""
    doubt: str
    """Why it is not known what became of a write; empty if none is in doubt."""
    doubted: int
    """Milliseconds for which a write has had no outcome."""
    may_answer: bool
    """Whether it is primary, and no other node can have taken over yet."""
    why: str
    """Why it is not ready; empty for a primary that is."""
    appends: int = 0
    """Records that this primary has appended since it took over."""
    log_maximum: int = 0
    """The size at which the log is full."""
    members: tuple[ClusterMember, ...] = ()
    """The nodes that belong to the log, this one among them."""

    @property
    def lag(self) -> int:
        """Records that are not here yet, as far as was seen."""
        return max(0, self.log_end - self.place)


class Cluster(Protocol):
    """A node of a cluster. Orders raise MQError if they do not suit its role."""

    def status(self) -> ClusterStatus:
        """The status now."""
        ...

    def promote(self) -> None:
        """Let a standby take over from any primary."""
        ...

    def remove(self, node: str) -> Completion[None]:
        """Keep the log for a node no more; STATUS_OBJECT_NAME_NOT_FOUND if there is no such."""
        ...

    def copy(self, directory: str) -> Completion[str]:
        """Copy this node's data to a new directory as a backup; the outcome says why it cannot be
        done, "" when it is."""
        ...

    def switch_over(self, to: str) -> None:
        """Let a primary stop, and another node take over: the one named `to`, or any if empty."""
        ...


class ClusterOperations:
    """What administrators see of a node, and order; others get MQ_ERROR_ACCESS_DENIED."""

    def __init__(self, node: Cluster) -> None:
        self.node = node

    def status(self, identity: Identity) -> ClusterStatus:
        """The status of the node, and of the log as the node sees it."""
        require_observer(identity)
        return self.node.status()

    def promote(self, identity: Identity) -> None:
        """Let a standby take over from any primary."""
        require_administrator(identity)
        note(identity, "promote", self.node.status().node)
        self.node.promote()

    def switch_over(self, identity: Identity, to: str) -> None:
        """Let a primary stop, and another node take over: the one named `to`, or any if empty."""
        require_administrator(identity)
        note(identity, "switch over", to or "any node")
        self.node.switch_over(to)

    def remove(self, identity: Identity, node: str) -> Completion[None]:
        """Keep the log for a node no more."""
        require_administrator(identity)
        note(identity, "remove node", node)
        return self.node.remove(node)

    def copy(self, identity: Identity, directory: str) -> Completion[str]:
        """Copy this node's data; the outcome is the reason of a failure, or ""."""
        require_administrator(identity)
        note(identity, "copy node", directory)
        return self.node.copy(directory)
