"""Objects of a queue manager that a module's tests share; each finds its queues empty."""

from collections.abc import Iterator

import pytest

from tests.support.dcom.com_objects import Objects, served_objects


@pytest.fixture(scope="module")
def served() -> Iterator[Objects]:
    with served_objects() as objects:
        yield objects


@pytest.fixture
def objects(served: Objects) -> Objects:
    served.empty()
    return served
