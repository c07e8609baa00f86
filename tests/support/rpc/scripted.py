"""Connections to a server that is a table of answers."""

from types import SimpleNamespace
from typing import Any

from rpcqm.client.connection import Connections
from rpcqm.client.target import RemoteServer
from rpcqm.codec.interface import OperationRequest


class Scripted(Connections):
    """Answers calls from a table, and notes them."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(RemoteServer("nowhere"))
        self.answers = answers
        self.calls: list[tuple[str, Any]] = []

    async def call(self, request: OperationRequest[Any], *_: Any, **__: Any) -> Any:
        operation = request.operation.name
        self.calls.append((operation, request))
        answer = self.answers.get(operation, SimpleNamespace(result=0))
        if isinstance(answer, Exception):
            raise answer
        return answer
