"""A queue manager may have as many connections as the system allows it."""

import resource

import pytest

from rpcqm.service import run


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limit that the process has, then those that were set."""
    known = [(1024, 524288)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: known[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: known.append(pair))
    return known


def test_the_limit_of_open_files_is_raised(limits: list[tuple[int, int]]) -> None:
    run._allow_many_connections()
    assert limits == [(1024, 524288), (524288, 524288)]


def test_a_limit_at_its_highest_is_left(limits: list[tuple[int, int]]) -> None:
    limits[0] = (4096, 4096)
    run._allow_many_connections()
    assert limits == [(4096, 4096)]


def test_a_system_that_refuses_is_no_obstacle(
    limits: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: int, pair: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    run._allow_many_connections()
    assert limits == [(1024, 524288)]
