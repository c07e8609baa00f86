"""A domain controller that a module's tests share."""

from collections.abc import Iterator

import pytest

from tests.support.directory.domain import Domain, unpacked_domain


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """A copy of the tests' domain with its controller running; tests that change it say so."""
    with unpacked_domain(tmp_path_factory.getbasetemp().parent) as made, made.serving():
        yield made
