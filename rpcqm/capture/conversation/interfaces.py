"""The interfaces that captured calls are decoded with, by their UUIDs."""

import copy
import functools
from uuid import UUID

from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.interface import Interface, Operation, TransferSyntax, load
from rpcqm.dcom.object_interfaces import by_iid
from rpcqm.rpc.pdu import SyntaxId

NAMES = (
    "remoteread",
    "qmcomm",
    "qmcomm2",
    "qmmgmt",
    "qm2qm",
    "epm",
    "mgmt",
    "rpcqm_admin",
    "rpcqm_bulk",
    "rpcqm_cluster",
    "rpcqm_sending",
    "rpcqm_trace",
)
"""The files of idl/ that declare an interface."""

_SYNTAXES = {syntax.uuid: syntax for syntax in TransferSyntax}


@functools.cache
def known_interfaces() -> dict[UUID, Interface]:
    """Every interface that is declared, by its UUID."""
    found = (load(name) for name in NAMES)
    return {interface.uuid: interface for interface in found}


ACTIVATORS = ("IObjectExporter", "IActivation", "IRemoteSCMActivator")
"""Interfaces of DCOM that no object has: those of the resolver and of the activators."""


@functools.cache
def object_interfaces() -> dict[UUID, Interface]:
    """The interfaces of COM objects and those that activate them, by their UUIDs.

    A dispinterface is IDispatch under its own UUID.
    """
    found = [*(load(f"dcom.{name}") for name in ACTIVATORS)]
    found += [each.load() for each in by_iid().values()]
    dispatch = load("oaut.IDispatch")
    for each in load_idl("mqac").dispinterfaces.values():
        events = copy.copy(dispatch)
        events.name, events.uuid = each.name, each.uuid
        found.append(events)
    return {interface.uuid: interface for interface in found}


def interface_of(identifier: UUID) -> Interface | None:
    """The interface of a UUID; those of objects are only loaded for one that nobody else has."""
    return known_interfaces().get(identifier) or object_interfaces().get(identifier)


@functools.cache
def interface_named(name: str) -> Interface | None:
    """An interface by its name or its file's, in any case; or by its UUID."""
    for stem, interface in zip(NAMES, known_interfaces().values(), strict=True):
        if name.lower() in (stem, interface.name.lower(), str(interface.uuid)):
            return interface
    for interface in object_interfaces().values():
        if name.lower() in (interface.name.lower(), str(interface.uuid)):
            return interface
    return None


class Context:
    """A presentation context: an interface in a transfer syntax.

    `interface` and `syntax` are None where they are not known; `name` is always something to
    show.
    """

    __slots__ = ("accepted", "identifier", "interface", "name", "syntax", "uuid", "version")

    def __init__(
        self,
        identifier: int,
        abstract: SyntaxId | None,
        transfer: UUID | None,
        accepted: bool = True,
    ) -> None:
        self.identifier = identifier
        self.uuid = abstract.uuid if abstract else None
        self.version = (abstract.major, abstract.minor) if abstract else None
        self.interface = interface_of(abstract.uuid) if abstract else None
        self.syntax = _SYNTAXES.get(transfer) if transfer else None
        self.accepted = accepted
        self.name = self.interface.name if self.interface else str(self.uuid or "unknown")

    def operation(self, opnum: int) -> Operation | None:
        """The operation of that number, where the interface is known and has it."""
        interface = self.interface
        if interface is None or opnum >= len(interface.operations):
            return None
        return interface.operations[opnum]
