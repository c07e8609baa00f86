"""Objects of [MC-MQAC] called without a network, by a caller who is only said to be there."""

from collections.abc import Callable
from typing import cast

from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.dcom.com_object import ComCall
from tests.support.rpc.callers import ALICE


class FakeCall:
    """As much of a ComCall and of its Call as objects look at."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.call = self
        self.abandoned = False
        self.peer = "192.0.2.7:4000"
        self._hooks: list[Callable[[], None]] = []

    def on_abandoned(self, callback: Callable[[], None]) -> None:
        self._hooks.append(callback)

    def on_cancelled(self, callback: Callable[[], None]) -> None:
        """Nobody cancels."""

    def check_waiting(self) -> None:
        """There is always room."""

    def abandon(self) -> None:
        """The client vanishes."""
        self.abandoned = True
        for hook in self._hooks:
            hook()


def call_of(identity: Identity = ALICE) -> ComCall:
    return cast(ComCall, FakeCall(identity))


def is_done(outcome: object) -> bool:
    """Whether a method that answers later has answered."""
    return isinstance(outcome, Completion) and outcome.done
