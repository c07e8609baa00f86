"""A queue manager with every door open, and what can be seen of an event from outside.

Who acts is `boss`, an administrator, or a stranger, who may do nothing with queues that are `SHUT`.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote

from prometheus_client.parser import text_string_to_metric_families

from rpcqm.client.blocking import BlockingClient
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.api.programs import Program
from tests.support.console.browser import Browser, open_browser
from tests.support.dcom.com_objects import Objects
from tests.support.dcom.dcom_client import DcomClient
from tests.support.rpc.network_caller import NetworkCaller

SETTINGS = (
    'name = "here"\nhttp_port = 0\n[security]\nsupporting_server = true\n[dcom]\nenabled = true\n'
)
OPTIONS = ("--console-port", "0", "--dcom-port", "0")
BOSS = "boss"
AWAY = r"DIRECT=OS:nowhere.invalid\private$\x"
OPEN = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
SHUT = "D:(A;;GA;;;BA)"
COUNTED = ("arrived", "received", "transferred", "moved", "expired", "purged", "failed")
_numbers = count(1)


@dataclass
class World:
    """The doors; each is opened when it is used first."""

    machine: PrivateQueueManager
    client: BlockingClient
    who: str = BOSS
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def credentials(self) -> NtlmCredentials:
        return NtlmCredentials(self.who, PASSWORD)

    def caller(self) -> NetworkCaller:
        """One connection for all interfaces of messages."""
        names = ("remoteread", "qmcomm", "qmcomm2", "qm2qm")
        address = self.machine.endpoint("rpc")
        made = NetworkCaller(address, *names, credentials=self.credentials)
        return self.stack.enter_context(made)

    @property
    def far(self) -> BlockingClient:
        """The client, over the network."""
        if ("far", self.who) not in self.known:
            server = RemoteServer(*self.machine.endpoint("epm"), self.credentials)
            made = self.stack.enter_context(BlockingClient(server))
            self.known["far", self.who] = made
        client: BlockingClient = self.known["far", self.who]
        return client

    @property
    def objects(self) -> Objects:
        if ("objects", self.who) not in self.known:
            com = DcomClient(self.machine.endpoint("epm"), self.credentials)
            made = Objects(self.machine, self.stack.enter_context(com), self.client)
            self.known["objects", self.who] = made
        objects: Objects = self.known["objects", self.who]
        return objects

    @property
    def program(self) -> Program:
        return self.program_of(self.who)

    def program_of(self, who: str) -> Program:
        if ("program", who) not in self.known:
            made = Program(self.machine.endpoint("console"), who, PASSWORD)
            self.stack.callback(made.close)
            self.known["program", who] = made
        program: Program = self.known["program", who]
        return program

    @property
    def browser(self) -> Browser:
        if ("browser", self.who) not in self.known:
            made = open_browser(self.machine)
            made.log_on(self.who, PASSWORD)
            self.known["browser", self.who] = made
        browser: Browser = self.known["browser", self.who]
        return browser

    def become_a_stranger(self) -> str:
        """Act as a new account without rights: the log has only so many refusals of each."""
        self.who = f"stranger{next(_numbers)}"
        self.client.run(self.client.accounts.add(self.who, nt_hash(PASSWORD)))
        return self.who

    def become_an_observer(self) -> None:
        """Act as a new account that may look at everything."""
        self.who = f"observer{next(_numbers)}"
        self.client.run(self.client.accounts.add(self.who, nt_hash(PASSWORD), ["observers"]))

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command: of boss by the local socket, of others over the network."""
        if self.who == BOSS:
            return self.machine.run(*words, check=False)
        host, port = self.machine.endpoint("epm")
        more = ("--server", f"{host}:{port}", "--user", self.who, "--password-stdin")
        return self.machine.run(*words, *more, check=False, input=f"{PASSWORD}\n")

    # What boss sees and prepares

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What boss is told; the request must succeed."""
        answer = self.program_of(BOSS).ask(method, path, body)
        assert answer.status < 300, (method, path, answer)
        return answer.value if answer.body else None

    def new_queue(self, sddl: str = OPEN, transactional: bool = False) -> "Subject":
        """A queue with a trail."""
        name = f"q{next(_numbers)}"
        self.ask("POST", "/queues", {"name": name, "sddl": sddl, "transactional": transactional})
        self.ask("PATCH", f"/queues/{name}", {"trail": True})
        return Subject(name)

    def send(self, name: str, headers: dict[str, str] | None = None) -> str:
        """The identifier of a message that boss has sent."""
        program = self.program_of(BOSS)
        answer = program.ask("POST", f"/queues/{quote(name)}/messages", b"x", headers)
        assert answer.status == 201, answer
        return str(answer.value["id"])

    def send_away(self) -> None:
        """Let a message wait for a computer that is not there."""
        self.ask("POST", f"/queues/-/messages?queue={quote(AWAY, safe='')}", b"x")

    def messages(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", f"/queues/{quote(name)}/messages")["messages"]
        return found

    # Effects

    def lines(self, position: int, event: str) -> list[dict[str, Any]]:
        """Lines of the log of one kind behind a position."""
        said = self.machine.log[position:].splitlines()
        lines = [json.loads(line) for line in said if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def counters(self) -> dict[str, float]:
        """How many messages had which fate since the start."""
        program = self.program_of(BOSS)
        program.connection.request("GET", "/metrics", headers=program.headers)
        told = program.connection.getresponse().read().decode()
        samples = {
            sample.name: sample.value
            for family in text_string_to_metric_families(told)
            for sample in family.samples
            if not sample.labels
        }
        return {name: samples[f"rpcqm_messages_{name}_total"] for name in COUNTED}

    def trail(self, identifier: str) -> list[str]:
        """What a message's trail has of it, without what an acknowledgement tells."""
        told = self.ask("GET", f"/message-traces/{quote(identifier, safe='')}")["events"]
        return [each["event"] for each in told]

    def told(self, after: str) -> list[str]:
        """The kinds of what pages and programs were told behind an event."""
        found = self.ask("GET", f"/event-trail?after={after}&limit=1000")["events"]
        return sorted({each["kind"] for each in found})

    def last_told(self) -> str:
        """The number of the latest event that is kept, "0" before there is one."""
        last = "0"
        while found := self.ask("GET", f"/event-trail?after={last}&limit=1000")["events"]:
            last = str(found[-1]["id"])
        return last


@dataclass(frozen=True)
class Subject:
    """A queue by its names; `key` and `identifier` are those of a message that is in it."""

    short: str
    key: str = ""
    identifier: str = ""

    @property
    def path(self) -> str:
        return rf".\private$\{self.short}"

    @property
    def shown(self) -> str:
        """What the log calls it."""
        return rf"here\private$\{self.short}"

    @property
    def text(self) -> str:
        return rf"DIRECT=OS:here\private$\{self.short}"

    @property
    def name(self) -> FormatName:
        return FormatName.parse(self.text)


@contextlib.contextmanager
def opened_world() -> Iterator[World]:
    with private_queue_manager(OPTIONS, SETTINGS) as machine, machine.client() as client:
        client.run(client.accounts.add(BOSS, nt_hash(PASSWORD), ["administrators"]))
        world = World(machine, client)
        with world.stack:
            yield world
