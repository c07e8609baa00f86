"""The object exporter: the objects that clients hold, by interface, with reference counts.

[MS-DCOM] 3.1.1. One exporter serves every object of the process, without input and output. An
object lives while an interface of it has references or a call uses it; the ping sets of `ping_sets`
notice when clients that hold references are gone.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.codec.automation.objref import StdObjRef
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.held_octets import MOST_HELD, HeldOctets
from rpcqm.rpc.association_group import AssociationGroup

INITIAL_REFERENCES = 5
"""Public references that come with a marshalled object, by [MS-DCOM] 3.1.1.5.1."""
MOST_REFERENCES = 0x7FFFFFFF
"""Public references to one interface of an object, and private ones of one caller.

Far more than clients ever ask for.

Bound `dcom.references_of_an_interface` [references]: more get E_OUTOFMEMORY.
"""

_log = get_logger("dcom")


@dataclass(frozen=True, slots=True)
class ExporterLimits:
    """The bounds on held objects: of one caller, and of all callers together."""

    objects: int = 200_000
    objects_per_caller: int = 20_000
    waiting_calls_per_caller: int = 1_000
    ping_sets_per_caller: int = 1_000
    octets_per_caller: int = MOST_HELD


class InterfaceEntry:
    """An interface of an object that clients hold: an entry of the IPID table."""

    __slots__ = ("iid", "ipid", "object", "private", "public")

    def __init__(self, entry: "ObjectEntry", iid: UUID, ipid: bytes) -> None:
        self.object = entry
        self.iid = iid
        self.ipid = ipid
        self.public = 0
        self.private: dict[str, int] | None = None
        """Private references by the callers who hold them; most interfaces never have any."""


class ObjectEntry:
    """An object that clients hold: an entry of the OID table.

    `used` counts calls that run on it or have it as an argument, `sets` are the ping sets that it
    is in. `last_call` is monotonic, in milliseconds; `client` are the connections of the client
    that has called it, or got it, last.
    """

    __slots__ = ("client", "com_object", "interfaces", "last_call", "oid", "owner", "sets", "used")

    def __init__(self, com_object: ComObject, oid: int, owner: str, now: int) -> None:
        self.com_object = com_object
        self.oid = oid
        self.owner = owner
        self.last_call = now
        self.client: AssociationGroup | None = None
        self.interfaces: tuple[InterfaceEntry, ...] = ()
        self.sets: tuple[PingSet, ...] = ()
        self.used = 0

    @property
    def is_client_gone(self) -> bool:
        """Whether the client that has called it last has no connection any more."""
        return self.client is not None and not self.client.connections


class PingSet:
    """Objects that a client pings together; `last_ping` is monotonic, in milliseconds.

    `alone` is shared as the `sets` of all objects that are in this set only.
    """

    __slots__ = ("alone", "last_ping", "members", "owner", "sequence")

    def __init__(self, owner: str, sequence: int, now: int) -> None:
        self.owner = owner
        self.sequence = sequence
        self.last_ping = now
        self.members: set[ObjectEntry] = set()
        self.alone = (self,)

    def add(self, entry: ObjectEntry) -> None:
        if entry not in self.members:
            self.members.add(entry)
            entry.sets = (*entry.sets, self) if entry.sets else self.alone

    def remove(self, entry: ObjectEntry) -> None:
        if entry in self.members:
            self.members.remove(entry)
            entry.sets = tuple(each for each in entry.sets if each is not self)


class ObjectExporter:
    """The tables of IPIDs and OIDs; `supports` says whether an object has an interface.

    Callers are identified by their SIDs. `by_ipid` is the table of IPIDs, for look-ups. Refusals
    are MQError with the codes of [MS-DCOM].
    """

    def __init__(
        self,
        clock: Clock,
        supports: Callable[[ComObject, UUID], bool],
        limits: ExporterLimits | None = None,
    ) -> None:
        self.clock = clock
        self._limits = limits or ExporterLimits()
        self.held = HeldOctets(self._limits.octets_per_caller)
        self.oxid = new_identifier()
        self.rem_unknown = secrets.token_bytes(16)
        self._supports = supports
        self.by_ipid: dict[bytes, InterfaceEntry] = {}
        self._objects: dict[int, ObjectEntry] = {}
        self._by_object: dict[ComObject, ObjectEntry] = {}
        self._owned: dict[str, int] = {}
        self.on_first: Callable[[], None] = lambda: None
        """Called when the first object enters the empty table."""

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def limits(self) -> ExporterLimits:
        """The bounds on held objects."""
        return self._limits

    @limits.setter
    def limits(self, limits: ExporterLimits) -> None:
        self._limits = limits
        self.held.most = limits.octets_per_caller

    @property
    def interfaces(self) -> int:
        """How many interfaces of objects clients hold."""
        return len(self.by_ipid)

    def objects(self) -> Iterator[ObjectEntry]:
        """Every object that clients hold; the tables must not change meanwhile."""
        return iter(self._objects.values())

    def find(self, ipid: bytes) -> InterfaceEntry | None:
        return self.by_ipid.get(ipid)

    def find_object(self, oid: int) -> ObjectEntry | None:
        return self._objects.get(oid)

    # References for clients

    def check_room(self, caller: str) -> None:
        """Raise MQError (E_OUTOFMEMORY) if the caller, or all together, hold too many objects."""
        limits = self.limits
        owned = self._owned.get(caller, 0)
        if owned >= limits.objects_per_caller or len(self._objects) >= limits.objects:
            raise MQError(HResult.E_OUTOFMEMORY, "too many objects")

    def marshal(
        self,
        com_object: ComObject,
        iid: UUID,
        caller: str,
        references: int = INITIAL_REFERENCES,
        *,
        admitted: bool = False,
        client: AssociationGroup | None = None,
    ) -> StdObjRef:
        """Give `caller` references to an object ([MS-DCOM] 3.1.1.5.1), over `client`.

        Raises MQError: E_NOINTERFACE if the object does not have the interface, E_OUTOFMEMORY if
        the caller holds too many objects, unless that was checked before the call that made the
        object.
        """
        entry = self._by_object.get(com_object)
        if entry is None:
            if not self._supports(com_object, iid):
                raise MQError(HResult.E_NOINTERFACE, str(iid))
            if not admitted:
                self.check_room(caller)
            entry = self._add_object(com_object, caller)
        entry.last_call = self.clock.monotonic()
        entry.client = client or entry.client
        return self._give(self._interface(entry, iid), references)

    def query(self, ipid: bytes, iid: UUID, references: int) -> StdObjRef:
        """Give references to another interface of an object ([MS-DCOM] 3.1.1.5.6.1.1).

        Raises MQError: RPC_E_INVALID_OBJECT for an IPID that is not there, else as `marshal`.
        """
        return self._give(self._interface(self.entry_of(ipid), iid), references)

    def entry_of(self, ipid: bytes) -> ObjectEntry:
        """The object that has an interface; counts as a call of it.

        Raises MQError (RPC_E_INVALID_OBJECT) if there is none.
        """
        found = self.by_ipid.get(ipid)
        if found is None:
            raise MQError(HResult.RPC_E_INVALID_OBJECT, "no such IPID")
        found.object.last_call = self.clock.monotonic()
        return found.object

    def add_references(self, ipid: bytes, public: int, private: int, caller: str) -> None:
        """Count more references ([MS-DCOM] 3.1.1.5.6.1.2); private ones are the caller's alone.

        Raises MQError: CO_E_OBJNOTREG for an IPID that is not there, E_OUTOFMEMORY beyond the
        largest count.
        """
        found = self.by_ipid.get(ipid)
        if found is None:
            raise MQError(HResult.CO_E_OBJNOTREG, "no such IPID")
        held = (found.private or {}).get(caller, 0) + private
        if max(found.public + public, held) > MOST_REFERENCES:
            raise MQError(HResult.E_OUTOFMEMORY, "too many references")
        found.public += public
        if private:
            found.private = {**(found.private or {}), caller: held}

    def release(self, ipid: bytes, public: int, private: int, caller: str) -> None:
        """Take references back ([MS-DCOM] 3.1.1.5.6.1.3).

        A number above the count takes all, an unknown IPID has no effect, and the private
        references of others stay.
        """
        found = self.by_ipid.get(ipid)
        if found is None:
            return
        found.public = max(found.public - public, 0)
        if private and found.private and caller in found.private:
            found.private[caller] -= private
            if found.private[caller] <= 0:
                del found.private[caller]
        self._remove_if_unheld(found)

    # References from clients

    def unmarshal(self, std: StdObjRef) -> ObjectEntry:
        """The object that a caller refers to; the references that come with it are taken back.

        `used` of the entry is counted: `let_go` ends that. [MS-DCOM] 3.1.1.5.3: neither the IID nor
        the OID counts. Raises MQError: E_NOINTERFACE for an IPID that is not there.
        """
        found = self.by_ipid.get(std.ipid)
        if found is None:
            raise MQError(HResult.E_NOINTERFACE, "no such IPID")
        found.object.used += 1
        found.public = max(found.public - std.public_refs, 0)
        self._remove_if_unheld(found)
        return found.object

    # Lifetime.

    def let_go(self, entry: ObjectEntry) -> None:
        """End a call's use of an object."""
        entry.used -= 1
        entry.last_call = self.clock.monotonic()
        if not (entry.used or entry.interfaces):
            self._remove_object(entry)

    def discard(self, com_object: ComObject) -> None:
        """Release an object that its caller does not get, unless another client holds it."""
        if com_object not in self._by_object:
            self._release(com_object)

    def reclaim(self, entry: ObjectEntry) -> None:
        """Take an object from all clients that hold it: they are gone ([MS-DCOM] 3.1.1.6.2)."""
        for interface in entry.interfaces:
            del self.by_ipid[interface.ipid]
        entry.interfaces = ()
        if not entry.used:
            self._remove_object(entry)

    def end_owned(self, owner: str) -> None:
        """Reclaim the objects of an account that has ended."""
        for entry in [each for each in self._objects.values() if each.owner == owner]:
            self.reclaim(entry)

    def close(self) -> None:
        """Reclaim every object: the service ends."""
        for entry in list(self._objects.values()):
            self.reclaim(entry)

    # The tables.

    def _add_object(self, com_object: ComObject, caller: str) -> ObjectEntry:
        if not self._objects:
            self.on_first()
        entry = ObjectEntry(com_object, new_identifier(), caller, self.clock.monotonic())
        self._objects[entry.oid] = self._by_object[com_object] = entry
        self._owned[caller] = self._owned.get(caller, 0) + 1
        return entry

    def _interface(self, entry: ObjectEntry, iid: UUID) -> InterfaceEntry:
        """The entry of an interface; a new one, without references, if the object has it."""
        for interface in entry.interfaces:
            if interface.iid == iid:
                return interface
        if not self._supports(entry.com_object, iid):
            raise MQError(HResult.E_NOINTERFACE, str(iid))
        interface = InterfaceEntry(entry, iid, secrets.token_bytes(16))
        entry.interfaces += (interface,)
        self.by_ipid[interface.ipid] = interface
        return interface

    def _give(self, interface: InterfaceEntry, references: int) -> StdObjRef:
        if interface.public + references > MOST_REFERENCES:
            raise MQError(HResult.E_OUTOFMEMORY, "too many references")
        interface.public += references
        return StdObjRef(0, references, self.oxid, interface.object.oid, interface.ipid)

    def _remove_if_unheld(self, interface: InterfaceEntry) -> None:
        if interface.public or interface.private:
            return
        del self.by_ipid[interface.ipid]
        entry = interface.object
        entry.interfaces = tuple(each for each in entry.interfaces if each is not interface)
        if not (entry.used or entry.interfaces):
            self._remove_object(entry)

    def _remove_object(self, entry: ObjectEntry) -> None:
        del self._objects[entry.oid]
        del self._by_object[entry.com_object]
        for pinged in entry.sets:
            pinged.members.discard(entry)
        entry.sets = ()
        owned = self._owned[entry.owner] - 1
        if owned:
            self._owned[entry.owner] = owned
        else:
            del self._owned[entry.owner]
        self._release(entry.com_object)

    @staticmethod
    def _release(com_object: ComObject) -> None:
        com_object.give_back()
        try:
            com_object.released()
        except Exception:  # the client is gone or does not need it: only we can notice the failure
            _log.exception("an object could not be released", kind=type(com_object).__name__)


def new_identifier() -> int:
    """An OXID, OID or SETID that nobody can guess; it is too large to look like a counter."""
    return secrets.randbits(63) | 1 << 63
