"""A configuration that is asked for during the start is taken over at its end."""

from typing import Any

import pytest

from rpcqm.service import run


@pytest.fixture
def reloaded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    done: list[object] = []
    monkeypatch.setattr(run, "_reload", lambda service, load: done.append(service))
    return done


def test_a_signal_during_the_start_waits_for_its_end(reloaded: list[object]) -> None:
    service: Any = object()
    reloads = run._Reloads(lambda: service)
    reloads.service = service
    reloads.ask()
    assert reloaded == []
    reloads.begin()
    assert reloaded == [service]
    reloads.ask()
    assert reloaded == [service, service]


def test_nothing_is_reloaded_that_was_not_asked_for(reloaded: list[object]) -> None:
    service: Any = object()
    reloads = run._Reloads(lambda: service)
    reloads.service = service
    reloads.begin()
    assert reloaded == []
