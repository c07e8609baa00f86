"""An order of a command, followed to its end."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from rpcqm.cli.main import main
from rpcqm.cli.message_choice import CONDITIONS
from rpcqm.client.maintenance import StayingLetters
from rpcqm.client.message_orders import OrderState
from rpcqm.codec.filters import written

BEGUN = OrderState("o", 1, 3_000, 1_000, 0, (), 2_000, False, False, 0, None, None)
WORDS = ["move", "orders", "other", "--all"]


class Orders:
    """What a queue manager answers, one state for each group."""

    def __init__(self, *states: OrderState, interrupt: bool = False) -> None:
        self._states, self._interrupt = list(states), interrupt
        self.asked: list[Any] = []

    async def begin(self, name: Any, to: Any, order: Any) -> OrderState:
        self.asked.append(dict(order))
        if self._interrupt:
            signal.raise_signal(signal.SIGINT)
        return self._states.pop(0)

    async def go_on(self, state: OrderState, *, stop: bool = False) -> OrderState:
        self.asked.append(stop)
        return self._states.pop(0)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[[Orders], Orders]:
    """Let commands meet a queue manager that carries out these orders."""

    def answered(orders: Orders) -> Orders:
        class Client:
            message_orders = orders

            def __init__(self, target: object) -> None: ...

            async def __aenter__(self) -> "Client":
                return self

            async def __aexit__(self, *_: object) -> None: ...

        monkeypatch.setattr("rpcqm.client.queue_manager.QueueManagerClient", Client)
        monkeypatch.setattr("rpcqm.cli.session.target", lambda arguments: None)
        return orders

    return answered


def state(step: int, done: int, left: int, **more: Any) -> OrderState:
    values: dict[str, Any] = {"gone": 0, "staying": (), "more": False, "unread": 0}
    values |= {"after": None, "until": None} | more
    return OrderState("o", step, 3_000, done, left=left, ended=not left, **values)


def test_an_order_goes_on_until_its_end(
    answered: Callable[[Orders], Orders], capsys: pytest.CaptureFixture[str]
) -> None:
    orders = answered(
        Orders(state(1, 1_000, 2_000), state(2, 2_000, 1_000), state(3, 2_999, 0, gone=1))
    )
    assert main(WORDS) == 0
    assert orders.asked[1:] == [False, False]
    assert capsys.readouterr().out == "Moved 2,999 messages; 1 had gone meanwhile.\n"


def test_ctrl_c_ends_an_order_behind_its_group_and_says_how_many(
    answered: Callable[[Orders], Orders], capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = OrderState("o", 1, 3_000, 1_000, 0, (), 2_000, True, False, 0, None, None)
    orders = answered(Orders(BEGUN, stopped, interrupt=True))
    assert main(WORDS) == 130
    assert orders.asked[1:] == [True]
    assert capsys.readouterr().err == "Interrupted; moved 1,000 messages.\n"


def test_more_than_an_order_may_have_are_several_orders(
    answered: Callable[[Orders], Orders], capsys: pytest.CaptureFixture[str]
) -> None:
    first = state(1, 3_000, 0, more=True, after="30", until="40")
    orders = answered(Orders(first, state(1, 5, 0)))
    assert main(WORDS) == 0
    assert orders.asked[1] == orders.asked[0] | {"after": "30", "until": "40"}
    assert capsys.readouterr().out == "Moved 3,005 messages.\n"


def test_what_stays_is_told_and_fails(
    answered: Callable[[Orders], Orders], capsys: pytest.CaptureFixture[str]
) -> None:
    full = StayingLetters(2_990, "`other` is full", "MQ_ERROR_INSUFFICIENT_RESOURCES")
    answered(Orders(state(1, 10, 0, staying=(full,), more=False)))
    assert main(WORDS) == 1
    assert capsys.readouterr().err == (
        "rpcqm: Moved 10 messages; 2,990 stay: `other` is full (MQ_ERROR_INSUFFICIENT_RESOURCES).\n"
    )


def test_the_conditions_of_commands_are_those_of_filters() -> None:
    assert [*CONDITIONS, "ignore_case"] == list(written.CONDITIONS)
