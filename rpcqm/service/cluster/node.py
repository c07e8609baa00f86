"""One node of a cluster: it follows the log, and later writes to it.

Every start is that of a standby. It is primary once a takeover of its own is in the log. When
another node has taken over, everything in this process's memory is void, and nobody may get an
answer of it: the process begins anew, by executing itself, which closes all of its connections in
one step (G730).
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rpcqm.base import outlet
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.log import get_logger
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.base.outlet import SENTENCE, Outlet
from rpcqm.base.settling import settled, settling
from rpcqm.config import Configuration, ConfigurationError
from rpcqm.config.replica_files import check_replica
from rpcqm.operations.cluster import ClusterRole, ClusterStatus
from rpcqm.replica.appending import Appender, FencedError
from rpcqm.replica.following import Standby, SwitchOver, Writer
from rpcqm.replica.lease import Lease, boottime
from rpcqm.replica.members import Member
from rpcqm.replica.tasks import EngineTasks
from rpcqm.service.cluster.engines import Engine, open_engine
from rpcqm.service.cluster.entering import Entered, enter, has_nothing
from rpcqm.service.cluster.floor_clock import FloorClock
from rpcqm.service.cluster.instance import instance_of
from rpcqm.service.cluster.kept_place import KeptPlace
from rpcqm.service.cluster.membership import Keeping, Membership
from rpcqm.service.cluster.node_copy import copy_of
from rpcqm.service.cluster.programs import run_program
from rpcqm.service.cluster.syncing import Syncing
from rpcqm.service.data_directory import prepare_directory, usable
from rpcqm.service.named_files import digest_of_all
from rpcqm.service.start_error import StartError
from rpcqm.store import restored
from rpcqm.store.ballast import Ballast
from rpcqm.store.database import Database
from rpcqm.store.directory_mark import marked
from rpcqm.store.disk_space import free_space
from rpcqm.store.errors import LogSilentError, ReplicationError, StoreError
from rpcqm.store.migration import is_of_cluster, place_of_database
from rpcqm.store.replication import LogBounds, Place
from rpcqm.store.settings import MIB, StoreSettings
from rpcqm.store.store import Store, exit_unanswered

AGAIN_SECONDS = 0.5
"""Seconds until a silent log is asked again."""
LOOK_SECONDS = 1.0
"""Seconds between looks at the log's end."""
LOOKS_AT_WAIT = 100
"""Milliseconds between checks whether a write waits for too long."""
FAILED_TO_BEGIN_ANEW = 75
"""The exit status if the process cannot execute itself (EX_TEMPFAIL)."""

_log = get_logger("service")


def begin_anew() -> None:
    """Execute the program again with its arguments: no connection and no thread of it is left."""
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    finally:
        os._exit(FAILED_TO_BEGIN_ANEW)


class ClusterNode:
    """A node from its start to its end; `operations.cluster.Cluster` is its public interface.

    `leaving` is set when an operator has another node take over.
    """

    def __init__(
        self,
        configuration: Configuration,
        clock: Clock | None = None,
        begin_anew: Callable[[], None] = begin_anew,
        fatal: Callable[[BaseException], None] = exit_unanswered,
    ) -> None:
        self.configuration = configuration
        self.section = configuration.replica
        self.clock = FloorClock(clock or SystemClock(), 0)
        self.leaving = asyncio.Event()
        self.order = ""
        """The order in the data directory's mark."""
        self.appender: Appender | None = None
        self.standby: Standby | None = None
        self.bounds = LogBounds(1, 0, 0)
        self.outlet: Outlet | None = None
        self._role, self._since = ClusterRole.WAITING, self.clock.now()
        self._why = "the log's servers do not answer yet"
        self._undo = AsyncExitStack()
        self._lease = Lease(self.section.lease_milliseconds, boottime)
        self.begin_anew, self._fatal = begin_anew, fatal
        self._tasks = EngineTasks()
        self._promoted: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._successor = ""
        self._first = 0
        self._promote_asked = False
        self._membership: Membership | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task that ends with the node."""
        self._tasks.begin(work)

    # From the start on

    def open(self) -> None:
        """Open the data; StartError if they cannot be used."""
        mistakes = check_replica(self.section)
        if mistakes:
            raise StartError(str(ConfigurationError(mistakes)))
        directory, storage = self.configuration.data_dir, self.configuration.storage
        self._timers = timers_on_loop(self.clock, asyncio.get_running_loop())
        with usable(directory):
            prepare_directory(directory)
            Ballast(directory, storage.ballast * MIB).make_room()
            with marked(directory) as self.order:
                self.database = Database(directory, StoreSettings())
                self._undo.callback(self._close_database)
                self._check_restored()
            self._itself = Writer(instance_of(directory), self.section.node)

    def _close_database(self) -> None:
        """Close the database, unless its store has closed it."""
        if self.database.handles:
            self.database.close()

    def _check_restored(self) -> None:
        if restored.is_pending(self.database, self.configuration.data_dir):
            raise StoreError(
                f"The data directory {self.configuration.data_dir} was restored from a backup, and "
                "the cluster's log has gone on since: it must not go on from there."
            )

    async def take_over(self) -> None:
        """Follow the log, and return once this node is primary; StartError if it cannot follow."""
        await run_program("replica.on_demote", self.section.on_demote, self._told())
        self._engine = await self._open_engine()
        self._undo.push_async_callback(self._engine.close)
        entered = await self._enter()
        self._follow(entered)
        kept = KeptPlace(self.database, self._end, self._is_between)
        self._syncing = Syncing(self.database, kept.number, self._failed)
        self._undo.push_async_callback(self.stop_syncing)
        self.begin(self._look_at_log())
        self._membership = self._member(self._engine)
        self.begin(self._membership.run())
        try:
            place = await self._promoted
        except ReplicationError as error:
            await self._enter_another(error)
            raise StartError(str(error)) from error
        _log.warning("this node takes over", epoch=place.epoch, record=place.number)
        await self._syncing.sync()

    def _member(self, engine: Engine) -> Membership:
        keeping = Keeping(self.section.keep_bytes, self.section.maximum_bytes)
        return Membership(engine, self._described, self._is_primary, keeping)

    def _described(self) -> Member:
        """This node's report to the others."""
        end = self._end()
        return Member(
            node=self.section.node,
            instance=self._itself.instance.hex(),
            role=self._role.value,
            incarnation=end.incarnation.hex(),
            epoch=end.epoch,
            place=end.number,
            synced=self._syncing.synced,
            behind=0 if self.appender is not None else max(0, self.bounds.last - end.number),
            time=self.clock.now(),
            version=version("rpcqm"),
            files=digest_of_all(self.configuration),
            free=free_space(self.configuration.data_dir),
        )

    def _is_primary(self) -> bool:
        return self._role is ClusterRole.PRIMARY and self._lease.held

    async def _open_engine(self) -> Engine:
        while True:
            try:
                return await open_engine(self.section)
            except LogSilentError as error:
                self._wait_for(error)
            except (ReplicationError, ConfigurationError) as error:
                raise StartError(str(error)) from error
            await asyncio.sleep(AGAIN_SECONDS)

    async def _enter(self) -> Entered:
        while True:
            try:
                return await enter(self._engine, self.database, self.section.name)
            except LogSilentError as error:
                self._wait_for(error)
            except StoreError as error:
                raise StartError(str(error)) from error
            await asyncio.sleep(AGAIN_SECONDS)

    def _wait_for(self, error: LogSilentError) -> None:
        if self._why != str(error):
            self._why = str(error)
            _log.warning("waiting for the log", reason=str(error))

    def _follow(self, entered: Entered) -> None:
        self.bounds = entered.bounds
        self.standby = Standby(
            self._engine,
            self.database,
            self._itself,
            self._lease,
            self.clock,
            self._timers,
            self._took_over,
            self._cannot_follow,
            self.section.takeover == "automatic",
            entered.bounds.last,
        )
        self._undo.callback(self._stop_following)
        self._set_role(ClusterRole.STANDBY, "it is a standby")
        self.clock.floor = entered.latest
        _log.info("following the log", log=self.section.name, record=self.standby.end.number)
        if self._promote_asked:
            self.standby.promote()

    async def _enter_another(self, error: ReplicationError) -> None:
        """Begin anew if another node without data was faster to begin the log."""
        if not has_nothing(self.database):
            return
        place = place_of_database(self.database)
        await self._enter()
        if place_of_database(self.database) != place:
            _log.info("another node has begun the log", reason=str(error))
            self.begin_anew()

    def _stop_following(self) -> None:
        if self.standby is not None and self.appender is None:
            self.standby.stop()

    def _took_over(self, place: Place) -> None:
        """Begin signs of life at once, whatever else remains before the doors open."""
        assert self.standby is not None
        self.clock.floor = max(self.clock.floor, self.standby.latest)
        self.appender = Appender(
            self._engine, place, self._lease, self.clock, self._timers, self._fenced
        )
        self.outlet = Outlet(lambda: self._lease.held)
        self._lease.on_renewal = self.outlet.release
        outlet.install(self.outlet)
        self._undo.callback(outlet.install, None)
        self._look_at_wait()
        self._set_role(ClusterRole.TAKING_OVER, "it takes over")
        self._promoted.set_result(place)

    def _look_at_wait(self) -> None:
        """Refuse requests once a write has waited for the log for too long."""
        assert self.appender is not None
        assert self.outlet is not None
        bound = self.section.refuse_after_milliseconds
        if self.appender.waited >= bound and not self.outlet.refusing:
            _log.error("the log does not take what is written: requests are refused until it does")
            self.outlet.refuse()
        self._timers.call_later(min(LOOKS_AT_WAIT, bound), self._look_at_wait)

    @property
    def is_refusing(self) -> bool:
        """Whether this primary refuses requests."""
        return self.outlet is not None and self.outlet.refusing

    def _cannot_follow(self, error: ReplicationError) -> None:
        if not self._promoted.done():
            self._promoted.set_exception(error)

    async def _look_at_log(self) -> None:
        """Read the log's bounds again and again, for the status only."""
        while True:
            try:
                self.bounds = await settled(self._engine.bounds())
            except ReplicationError as error:
                _log.debug("the log was not looked at", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    # As primary

    async def promoted(self) -> None:
        """Run the operator's program, as the last step before the doors; StartError if it fails."""
        await run_program("replica.on_promote", self.section.on_promote, self._told())

    def serves(self) -> None:
        """Note that the doors are open."""
        self._set_role(ClusterRole.PRIMARY, "")

    def failed(self, error: BaseException) -> None:
        """After a failed write begin anew if another node is primary; else end unanswered."""
        if isinstance(error, FencedError):
            self.begin_anew()
        else:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._fatal(error)

    def _fenced(self, by: bytes) -> None:
        _log.critical(
            "another node has taken over: this one answers nobody any more, and begins anew as a "
            "standby"
        )
        self.begin_anew()

    async def settle(self, store: Store) -> None:
        """Wait until the log has all of the store's changes, but not for ever."""
        if store.has_stopped:
            return
        with store.transaction("last") as transaction:
            pass
        try:
            async with asyncio.timeout(self.section.refuse_after_milliseconds / 1000):
                await settled(transaction.committed)
        except TimeoutError:
            _log.error("stopped with writes in doubt: their callers have no answer")

    async def stop_syncing(self) -> None:
        """Stop syncing: only the store uses the database from now on."""
        await self._syncing.stop()

    async def hand_over(self) -> None:
        """Append that this primary has stopped, and which node is to take over."""
        assert self.appender is not None
        order = SwitchOver(self._itself, self._successor)
        try:
            async with asyncio.timeout(self.section.refuse_after_milliseconds / 1000):
                await settled(self.appender.hand_over(order.encode()))
        except (TimeoutError, ReplicationError) as error:
            _log.error("stopped, but the others find out by themselves", error=str(error))

    async def stop(self) -> None:
        """End all tasks, and close the data and the log."""
        if self.appender is not None:
            self.appender.stop()
        await self._tasks.end()
        await self._undo.aclose()

    # Its public interface

    def status(self) -> ClusterStatus:
        """The present state of the node."""
        end, writer = self._end(), None if self.standby is None else self.standby.writer
        appender = self.appender
        if appender is not None and end.epoch:
            writer = self._itself
        return ClusterStatus(
            role=self._role,
            node=self.section.node,
            instance=self._itself.instance.hex(),
            log=self.section.name,
            incarnation="" if end is _NOWHERE else end.incarnation.hex(),
            epoch=end.epoch,
            place=end.number,
            log_end=max(self.bounds.last, end.number),
            log_first=self.bounds.first,
            log_bytes=self.bounds.size,
            active="" if writer is None else writer.name,
            since=self._since,
            last_takeover=0 if self.standby is None else self.standby.taken_over,
            silence=self._silence(),
            doubt="" if appender is None else appender.doubt,
            doubted=0 if appender is None else appender.waited,
            may_answer=appender is not None and self._lease.held,
            why=SENTENCE if self.is_refusing else self._why,
            appends=0 if appender is None else appender.appended,
            log_maximum=self.section.maximum_bytes,
            members=() if self._membership is None else self._membership.told(self.bounds),
        )

    def _silence(self) -> int:
        if self.appender is not None:
            return self._lease.since_renewal
        return 0 if self.standby is None else self.standby.silence

    def _end(self) -> Place:
        if self.appender is not None:
            return self.appender.end
        if self.standby is not None:
            return self.standby.end
        return place_of_database(self.database) if is_of_cluster(self.database) else _NOWHERE

    def _is_between(self) -> bool:
        """Whether the whole log, as far as this node knows it, is applied here."""
        if self.appender is not None:
            return not self.appender.is_writing
        return self.standby is not None and self.standby.is_between

    def promote(self) -> None:
        """Let this standby take over, as soon as the log answers."""
        if self.appender is not None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION, "this node is primary already")
        self._promote_asked = True
        if self.standby is not None:
            self.standby.promote()

    def switch_over(self, to: str) -> None:
        """Let this primary stop, and another one take over."""
        if self._role is not ClusterRole.PRIMARY:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION, "this node is not primary")
        if to == self._itself.name:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION, "that is this node itself")
        self._successor = to
        self.leaving.set()

    def remove(self, node: str) -> Completion[None]:
        """Forget a member: the log is not kept for it any more."""
        return settling(self._remove(node))

    async def _remove(self, node: str) -> None:
        membership = self._membership
        try:
            found = membership is not None and await membership.remove(node)
        except ReplicationError as error:
            raise MQError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, str(error)) from error
        if not found:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, node)

    def copy(self, directory: str) -> Completion[str]:
        """Copy the present data."""
        return settling(copy_of(self.database, self.configuration, self.clock, Path(directory)))

    def _set_role(self, role: ClusterRole, why: str) -> None:
        self._role, self._why, self._since = role, why, self.clock.now()

    def _told(self) -> dict[str, str]:
        """The environment of the operator's programs."""
        return {"RPCQM_NODE": self.section.node, "RPCQM_EPOCH": str(self._end().epoch)}


_NOWHERE = Place.beginning(bytes(16))
