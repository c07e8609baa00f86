"""Ports: free ones, the next ones, none, and why one cannot be had."""

import asyncio
import errno
import os

import pytest

from rpcqm.service.listeners import open_listener
from rpcqm.service.start_error import StartError

HOST = "127.0.0.1"


class Machine:
    """Ports that are taken, and what was asked for."""

    def __init__(self, *taken: int, code: int = errno.EADDRINUSE) -> None:
        self.taken = taken
        self.code = code
        self.asked: list[int] = []

    async def listen(self, host: str, port: int) -> int:
        self.asked.append(port)
        if port in self.taken:
            raise OSError(self.code, os.strerror(self.code))
        return port or 40_000

    def open(self, port: int | None) -> int | None:
        return asyncio.run(open_listener(self.listen, "--rpc-port", HOST, port, 2103))


def test_without_a_port_it_is_the_first_free_one_eleven_apart() -> None:
    machine = Machine(2103, 2114)
    assert machine.open(None) == 2125
    assert machine.asked == [2103, 2114, 2125]


def test_zero_is_any_port_and_a_negative_one_none() -> None:
    assert Machine().open(0) == 40_000
    machine = Machine()
    assert machine.open(-1) is None
    assert machine.asked == []


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    machine = Machine(5000)
    with pytest.raises(StartError, match=r"Port 5000 of 127.0.0.1 is in use by another program"):
        machine.open(5000)
    assert machine.asked == [5000]


def test_when_every_port_is_taken_it_is_said() -> None:
    with pytest.raises(StartError, match="No port from 2103 on is free"):
        Machine(*range(2103, 65536)).open(None)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "may only be opened by root"),
        (errno.EADDRNOTAVAIL, "choose an address with --host"),
    ],
)
def test_what_another_port_does_not_help_ends_the_search(code: int, sentence: str) -> None:
    machine = Machine(2103, code=code)
    with pytest.raises(StartError, match=sentence):
        machine.open(None)
    assert machine.asked == [2103]


def test_where_another_setting_chooses_the_address_that_one_is_named() -> None:
    machine = Machine(0, code=errno.EADDRNOTAVAIL)
    opened = open_listener(machine.listen, "--console-port", HOST, 0, 15680, "`console.host`")
    with pytest.raises(StartError, match=r"choose an address with `console\.host`"):
        asyncio.run(opened)
