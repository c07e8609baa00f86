"""One queue manager for all walks of impacket."""

from collections.abc import Iterator

import pytest

from tests.support.dcom.impacket_place import Place, served_place


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served_place(tmp_path_factory.mktemp("place")) as served:
        yield served
