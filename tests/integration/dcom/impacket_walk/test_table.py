"""The walks of impacket leave out no method."""

from rpcqm.base.errors import HResult
from tests.integration.dcom.impacket_walk import (
    test_machine,
    test_message,
    test_queue,
    test_queue_info,
    test_transactions,
)
from tests.support.dcom.impacket_place import ALWAYS_REFUSED, NOT_IMPLEMENTED
from tests.support.dcom.impacket_walker import methods

METHODS, ONLY_NAMES = 238, 18
WALKS = (test_machine, test_message, test_queue, test_queue_info, test_transactions)


def test_every_interface_of_the_objects_is_walked_through_once() -> None:
    walked = [family for walk in WALKS for family in walk.WALKED]
    assert sorted(walked) == sorted({each.partition(".")[0] for each in methods()})


def test_there_are_as_many_methods_as_the_specification_has() -> None:
    assert len(methods()) == METHODS
    assert sum(map(len, NOT_IMPLEMENTED.values())) == ONLY_NAMES
    refused = [each for each, code in ALWAYS_REFUSED.items() if code is not HResult.E_NOTIMPL]
    assert len(refused) == 2
    assert ALWAYS_REFUSED.keys() <= methods()
