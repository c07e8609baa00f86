"""This node's reports to the others by the log's servers, and the trimming of the log."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.base.log import get_logger
from rpcqm.base.settling import settled
from rpcqm.operations.cluster import ClusterMember
from rpcqm.replica.lease import Boottime, boottime
from rpcqm.replica.members import Member, first_to_keep, is_too_far_behind, members_of
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import LogBounds, ReplicatedLog

SECONDS = 5.0
"""Seconds between two reports of a node."""
_SILENT = 15_000
"""Milliseconds after which a member's report counts no more."""
_LOOKS = 720
"""Ends of the log that are remembered: an hour."""

_log = get_logger("service")


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much of the log is kept."""

    keep_bytes: int
    maximum_bytes: int


@dataclass(frozen=True, slots=True)
class _Heard:
    """A member's last report, its arrival by the monotonic clock here, and how far its own clock
    was ahead then."""

    member: Member
    at: int
    ahead: int


class Membership:
    """Reports this node's state, reads the others', and trims the log while it is primary."""

    def __init__(
        self,
        engine: ReplicatedLog,
        describe: Callable[[], Member],
        is_primary: Callable[[], bool],
        keeping: Keeping,
        boottime: Boottime = boottime,
    ) -> None:
        self._engine = engine
        self._describe = describe
        self._is_primary = is_primary
        self._keeping = keeping
        self._boottime = boottime
        self._heard: dict[str, _Heard] = {}
        self._ends: deque[tuple[int, int]] = deque(maxlen=_LOOKS)
        """Times and ends of the log."""

    async def run(self) -> None:
        """Look again and again; a silent log is asked later."""
        while True:
            try:
                await self.look()
            except ReplicationError as error:
                _log.debug("the members were not asked", error=str(error))
            await asyncio.sleep(SECONDS)

    async def look(self) -> None:
        """Report, read and trim once; ReplicationError if the log does not answer."""
        own = self._describe()
        await settled(self._engine.report(own.node, own.encode()))
        members = members_of(await settled(self._engine.reports()))
        bounds = await settled(self._engine.bounds())
        self._ends.append((self._boottime(), bounds.last))
        self._heard = {
            each.node: self._hear(each, own.time)
            for each in members
            if each.incarnation == own.incarnation
        }
        if self._is_primary():
            await self._trim(own, bounds)

    def _hear(self, member: Member, now: int) -> _Heard:
        before = self._heard.get(member.node)
        if before is not None and before.member == member:
            return before
        late, most = now - member.time, int(SECONDS * 1000)
        ahead = -late if late < 0 else min(0, most - late)
        return _Heard(member, self._boottime(), ahead if before is not None else max(0, ahead))

    async def remove(self, node: str) -> bool:
        """Forget a node; False if there is none with the name."""
        reports = await settled(self._engine.reports())
        if node not in reports:
            return False
        await settled(self._engine.report(node, b""))
        self._heard.pop(node, None)
        return True

    async def _trim(self, own: Member, bounds: LogBounds) -> None:
        others = [node.member.synced for name, node in self._heard.items() if name != own.node]
        keeping = self._keeping
        first = first_to_keep(bounds, own.synced, others, keeping.keep_bytes, keeping.maximum_bytes)
        if first > bounds.first:
            await settled(self._engine.trim(first))
            _log.info("log trimmed", first=first, last=bounds.last)

    def told(self, bounds: LogBounds) -> tuple[ClusterMember, ...]:
        """The members, in the order of their names."""
        now = self._boottime()
        return tuple(self._told(heard, bounds, now) for heard in self._heard.values())

    def _told(self, heard: _Heard, bounds: LogBounds, now: int) -> ClusterMember:
        member, age = heard.member, now - heard.at
        lag = member.behind if age < _SILENT else max(0, bounds.last - member.place)
        return ClusterMember(
            node=member.node,
            role=member.role,
            place=member.place,
            synced=member.synced,
            lag=lag,
            lag_milliseconds=self._lag(member.place, now) if lag else 0,
            age=age,
            ahead=heard.ahead,
            version=member.version,
            files=member.files,
            free=member.free,
            lost=is_too_far_behind(member, bounds),
        )

    def _lag(self, place: int, now: int) -> int:
        """For how long the log has had more than that place."""
        return next((now - at for at, end in self._ends if end > place), 0)
