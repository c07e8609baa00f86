"""A second queue manager of ours in the place of Windows, for scripts/windows-check --serve.

What scripts/windows-check.d/windows/messaging.ps1 does by System.Messaging is done here by our
client; the answers have the form of the file of answers.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from rpcqm.base.errors import MQError
from rpcqm.client import mq
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import PrivacyLevel
from rpcqm.testing import PrivateQueueManager
from tests.support.project.windows_check import module

THERE, BACK = "DIRECT=OS:linux\\private$\\wcheck-", "DIRECT=OS:windows\\private$\\wcheck-"
PATIENCE = 20.0
WHOLE_ORDER = 120.0
"""Seconds that an order may take, in which some reports do not come."""


class AbortError(Exception):
    """Ends a transaction without a commit."""


def answer_of(step: Callable[[], object]) -> str:
    """What a step says: its answer, `ok` for nothing, or the code of its refusal."""
    try:
        found = step()
    except MQError as refused:
        return f"0x{int(refused.status) & 0xFFFFFFFF:08X}"
    return "ok" if found is None else str(found)


class StandIn:
    """The queue manager `windows`, whose queues are those that Windows makes for the check."""

    def __init__(self, machine: PrivateQueueManager) -> None:
        self.station = module("serving").Station(str(machine.data_dir), patience=PATIENCE)
        self.station.prepare()
        self.answers: dict[str, str] = {}

    def ask(self, question: str, step: Callable[[], object]) -> None:
        self.answers[question] = answer_of(step)

    def order(self, order: str) -> str:
        """Give an order and take the answers that come back; `yes` if they came."""
        with self.station.open(THERE + "control") as control:
            identifier = control.send(BACK.encode(), label=order)
        with self.station.open("verdicts") as verdicts:
            reply = verdicts.receive_one(WHOLE_ORDER, correlation=identifier)
        for line in reply.body.decode().splitlines():
            question, _, answer = line.split(" ", 2)
            self.answers[question] = answer
        return "yes" if reply.label == order else "no"

    def exchange(self) -> None:
        """What Ask-Exchange does, but for what only Windows has."""
        names = module("serving")
        self.ask("B00", lambda: self.order("hello"))
        for question, name, transactional in names.REVERSE:
            self.answers[question.replace("3", "0", 1)] = self.station.reported(
                THERE + name, transactional, names.REPORTED
            )
        self.ask("B10", lambda: f"number {self.station.dead_letters(names.REPORTED)}")
        self.ask("B12", self._encrypted)
        self.ask("B13", self._steps)
        self.ask("B14", self._express)
        self.ask("B20", lambda: self.order("arrived"))
        self.ask("B30", lambda: self.order("reverse"))
        self.ask("B41", lambda: f"number {self.station.dead_letters(names.BACK)}")

    def _encrypted(self) -> None:
        with self.station.open(THERE + "plain") as plain:
            plain.send(b"x", privacy=PrivacyLevel.BASE)

    def _steps(self) -> None:
        with self.station.open(THERE + "stream") as stream:
            for end in ("abort", "commit"):
                with contextlib.suppress(AbortError), stream.transaction():
                    for number in (1, 2, 3):
                        stream.send(b"x", label=f"{end}{number}")
                    if end == "abort":
                        raise AbortError

    def _express(self) -> None:
        fields = dict(module("serving").EXPRESS)
        with self.station.open(THERE + "plain") as plain:
            plain.send(fields.pop("body"), response_queue=r".\private$\wcheck-told", **fields)


class RemoteReader:
    """What Ask-RemoteReads does, by RemoteRead over the network."""

    def __init__(self, stand_in: StandIn, server: RemoteServer) -> None:
        self._stand_in = stand_in
        self._server = server

    def read(self) -> None:
        ask = self._stand_in.ask
        ask("C00", lambda: self._stand_in.order("fill"))
        with self._open("read") as queue:
            ask("C01", lambda: f"text {queue.peek(PATIENCE).label}")
            ask("C02", lambda: f"number {len(list(queue.browse()))}")
            ask("C03", lambda: f"text {queue.receive_one(PATIENCE).label}")
        ask("C04", lambda: self._received(1))
        ask("C05", lambda: self._received(0))
        ask("C07", self._after_a_purge)
        ask("C08", lambda: self._peeked("absent"))
        ask("C09", lambda: self._peeked("closed"))
        ask("C10", self._undone)
        ask("C11", lambda: self._peeked("reads"))
        ask("C12", lambda: self._peeked("read;late"))
        ask("C15", lambda: self._stand_in.order("calls"))
        ask("C20", lambda: self._stand_in.order("delete"))

    def _open(self, name: str) -> Any:
        return mq.open(f"wcheck-{name}", self._server)

    def _name(self, name: str) -> FormatName:
        return FormatName.parse(f"DIRECT=TCP:{self._server.host}\\private$\\wcheck-{name}")

    def _received(self, place: int) -> str:
        with (
            BlockingClient(self._server) as client,
            client.open_reader(self._name("read")) as reader,
        ):
            identifier = list(reader.browse())[place].lookup_identifier
            with reader.receive_by_lookup_identifier(identifier) as message:
                return f"text {message.label}"

    def _after_a_purge(self) -> None:
        with (
            BlockingClient(self._server) as client,
            client.open_reader(self._name("read")) as reader,
        ):
            reader.purge()
            with reader.receive(0):
                pass

    def _peeked(self, name: str) -> str:
        with self._open(name) as queue:
            return f"text {queue.peek(PATIENCE).label}"

    def _undone(self) -> str:
        label = ""
        with self._open("reads") as queue, contextlib.suppress(AbortError), queue.transaction():
            label = queue.receive_one(PATIENCE).label
            raise AbortError
        return f"text {label}"
