"""A KDC that a module's tests share, and that their process knows."""

from collections.abc import Iterator

import pytest

from tests.support.rpc.kdc import Kdc, require_kdc


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    require_kdc()
    with Kdc(tmp_path_factory.mktemp("kdc")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made
