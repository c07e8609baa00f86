"""The interfaces that objects can have, as the IDL declares them."""

import functools
import re
from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.interface import Interface, load, names_of
from rpcqm.dcom.com_object import ComObject

IDL_FILES = ("dcom", "oaut", "mqac")

IUNKNOWN = UUID("00000000-0000-0000-c000-000000000046")
IDISPATCH = UUID("00020400-0000-0000-c000-000000000046")

FIRST_METHOD = 3
"""The opnums below are IUnknown's own, which are never sent ([MS-DCOM] 3.1.1.5.8)."""


@dataclass(frozen=True, slots=True)
class ObjectInterface:
    """An interface of objects: `place` is its name for `codec.interface.load`.

    `iids` are its own IID and those of the interfaces that it is derived from.
    """

    name: str
    iid: UUID
    place: str
    iids: frozenset[UUID]

    @property
    def family(self) -> str:
        """The common name of its revisions: IMSMQQueue of IMSMQQueue4."""
        return re.sub(r"\d+$", "", self.name)

    def load(self) -> Interface:
        return load(self.place)


@functools.cache
def object_interfaces() -> dict[str, ObjectInterface]:
    """Every interface of objects in the IDL, by its name."""
    found: dict[str, ObjectInterface] = {}
    for file in map(load_idl, IDL_FILES):
        for place, declared in zip(names_of(file), file.interfaces.values(), strict=True):
            if declared.is_object:
                iids = frozenset({declared.uuid, *(base.uuid for base in declared.bases)})
                found[declared.name] = ObjectInterface(declared.name, declared.uuid, place, iids)
    return found


@functools.cache
def by_iid() -> dict[UUID, ObjectInterface]:
    return {each.iid: each for each in object_interfaces().values()}


@functools.cache
def closure(names: tuple[str, ...]) -> frozenset[UUID]:
    """The IIDs that an object with these interfaces has: their own and what they derive from."""
    known = object_interfaces()
    return frozenset({IUNKNOWN}).union(*(known[name].iids for name in names))


def supports(com_object: ComObject, iid: UUID) -> bool:
    """Whether an object has an interface, in its present state."""
    return iid in closure(com_object.interfaces)


@functools.cache
def method_names(names: tuple[str, ...], interface: ObjectInterface) -> tuple[str, ...]:
    """A class's method names for the operations of one of its interfaces `names`, by opnum.

    Revisions have the same operations at the same opnums under changing names: the class has the
    newest's, which stands first among its interfaces. "" where there is no operation.
    """
    known = object_interfaces()
    family = [known[name] for name in names if known[name].family == interface.family]
    newest = family[0].load() if family else interface.load()
    own = interface.load().operations
    return tuple(
        "" if operation is None else (newest.operations[opnum] or operation).name
        for opnum, operation in enumerate(own)
    )
