"""What an account of a domain can have open: as `open_rights` has it for accounts here."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from rpcqm.codec.names.format_name import FormatName
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.api.programs import Program
from tests.support.dcom.com_objects import Objects
from tests.support.dcom.dcom_client import DcomClient
from tests.support.qm.open_rights import FIRST, World
from tests.support.rpc.domain_doors import Doors
from tests.support.rpc.network_caller import NetworkCaller

_numbers = count(1)


class NegotiatingProgram(Program):
    """A program that shows a ticket with every request."""

    def __init__(self, doors: Doors, cache: str) -> None:
        self._doors, self._cache = doors, cache
        super().__init__(doors.machine.endpoint("console"))

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Negotiate {self._doors.token(self._cache)}"}

    @headers.setter
    def headers(self, _: Mapping[str, str]) -> None:
        """Nothing: they are made for each request."""


@dataclass
class DomainWorld(World):
    """The same with tickets in place of passwords."""

    doors: Doors | None = None
    cache: str = ""

    @property
    def name(self) -> FormatName:
        return FormatName.parse(rf"DIRECT=OS:{self.machine.ready.name}\private$\{self.queue}")

    @property
    def _doors(self) -> Doors:
        assert self.doors is not None
        return self.doors

    def _credentials_of(self, user: str) -> Any:
        return NtlmCredentials(user, FIRST) if user else self._doors.credentials(self.cache)

    def caller(self, *interfaces: str, group_id: int = 0, user: str = "") -> NetworkCaller:
        address, credentials = self.machine.endpoint("rpc"), self._credentials_of(user)
        made = NetworkCaller(address, *interfaces, credentials=credentials, group_id=group_id)
        return self.stack.enter_context(made)

    def program(self, user: str = "") -> Program:
        made = NegotiatingProgram(self._doors, self.cache)
        self.stack.callback(made.close)
        return made

    def objects(self, user: str = "") -> Objects:
        address, credentials = self.machine.endpoint("epm"), self._credentials_of(user)
        com = self.stack.enter_context(DcomClient(address, credentials))
        return Objects(self.machine, com, self.client)


@contextlib.contextmanager
def domain_world_of(doors: Doors, cache: str) -> Iterator[DomainWorld]:
    """An account of the domain by its tickets, and the name of a new queue."""
    with doors.machine.client() as client:
        queue = f"of-domain-{next(_numbers)}"
        made = DomainWorld(doors.machine, client, "", queue, doors=doors, cache=cache)
        with made.stack:
            yield made
