"""A program that uses /api/v1 with http.client, over one connection."""

import base64
import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.support.waiting import PATIENCE


class Told(NamedTuple):
    """An answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.value["code"])


class Program:
    """An account that asks."""

    def __init__(self, address: tuple[str, int], name: str = "", password: str = "secret") -> None:
        self.connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
        self.headers: dict[str, str] = {}
        if name:
            credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {credentials}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Told:
        """Ask for a path below /api/v1; a body that is no octets is JSON."""
        octets, more = b"", dict(self.headers)
        if isinstance(body, bytes):
            octets = body
        elif body is not None:
            octets = json.dumps(body).encode()
            more["Content-Type"] = "application/json"
        self.connection.request(method, f"/api/v1{path}", octets, more | dict(headers or {}))
        answer = self.connection.getresponse()
        return Told(answer.status, answer.headers, answer.read())

    def close(self) -> None:
        self.connection.close()
