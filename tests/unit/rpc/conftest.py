"""A server without a network, and a connection to it that is bound."""

import pytest

from tests.support.rpc.probe import Rig, Wire


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def bound(rig: Rig) -> Wire:
    wire = rig.connect()
    wire.bind()
    return wire
