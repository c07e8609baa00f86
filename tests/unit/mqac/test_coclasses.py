"""The classes that can be activated have every method that their interfaces declare."""

import inspect
from collections.abc import Iterator
from uuid import UUID

from rpcqm.codec.automation.type_library import describe
from rpcqm.dcom.com_object import ComObject
from rpcqm.mqac.coclasses import coclasses
from rpcqm.service import interfaces
from tests.support.queue_manager import RunningQueueManager

_OUT_ONLY = 2
"""PARAMFLAG_FOUT without PARAMFLAG_FIN."""


def lacking(made: ComObject) -> Iterator[str]:
    """What its interfaces declare, and it does not have with as many [in] parameters."""
    newest: dict[tuple[str, int], str] = {}
    for interface in made.INTERFACES:
        if not interface.startswith("IMSMQ"):
            continue
        family = interface.rstrip("234")
        for member in describe(interface).members:
            name = newest.setdefault((family, member.opnum), member.operation)
            method = getattr(made, name, None)
            given = [each for each in member.parameters if each.flags & 3 != _OUT_ONLY]
            if method is None:
                yield f"{interface}.{name}"
                continue
            try:
                inspect.signature(method).bind(None, *given)
            except TypeError as error:
                yield f"{interface}.{name}: {error}"


def test_every_class_has_the_methods_of_its_interfaces(qm: RunningQueueManager) -> None:
    classes = coclasses(interfaces.machine(qm.engine))
    assert UUID("d7d6e075-dccd-11d0-aa4b-0060970debae") in classes
    assert [what for make in classes.values() for what in lacking(make())] == []
