"""Queue managers on machines: the nodes of a cluster, and a plain one that sends to it."""

import asyncio
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from rpcqm.client.ready import ReadyFile
from rpcqm.client.target import LocalServer
from rpcqm.testing.private import KEPT
from tests.support.cluster.log_servers import CLIENTS, Access
from tests.support.cluster.machines import LAN, Program, RemoteMachine
from tests.support.waiting import PATIENCE

RPCQM = (sys.executable, "-m", "rpcqm")
BANK, CAROL = "bank", "carol"
"""The queue manager of the cluster, and the other one."""
LEASE = 2_000
ENDPOINT_MAPPER, RPC, BINARY, HTTP, CONSOLE = 135, 2103, 1801, 80, 15680
EVERYONE = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
PASSWORD = "a secret of the bank"
ACCOUNT = "teller"
LOGON = {"Authorization": "Basic " + b64encode(f"{ACCOUNT}:{PASSWORD}".encode()).decode()}
SETTINGS = f"""\
host = "0.0.0.0"
epm_port = {ENDPOINT_MAPPER}
rpc_port = {RPC}
binary_port = {BINARY}
http_port = {HTTP}
console_port = {CONSOLE}
[storage]
reserve = 8
ballast = 0
[security]
allow_nonauthenticated_rpc = true
new_remote_read_server_allow_none_security_client = true
allow_unprotected_rpc = true
supporting_server = true
"""


@dataclass(frozen=True, slots=True)
class Keys:
    """What the nodes and their clients have in files: TLS, and the way to the log."""

    certificate: Path
    key: Path
    log: Access

    def context(self) -> ssl.SSLContext:
        """For clients of the interface for programs."""
        return ssl.create_default_context(cafile=str(self.certificate))


class QueueManager(Program):
    """`rpcqm serve` with its files on the machine's disk."""

    def __init__(
        self, machine: RemoteMachine, computer: str, configuration: str, preloaded: Path | None
    ) -> None:
        super().__init__(machine)
        self.computer = computer
        self._configuration = f'name = "{computer}"\n{configuration}'
        self.shift = machine.disk.parent / f"{machine.name}.shift"
        """How many seconds its clock is off."""
        self._environment = dict(_environment())
        if preloaded is not None:
            self.shift.write_text("0\n")
            preload = {"LD_PRELOAD": str(preloaded), "RPCQM_TEST_SHIFT": str(self.shift)}
            self._environment |= preload

    @property
    def data(self) -> Path:
        return self.machine.disk / "data"

    @property
    def ready_path(self) -> Path:
        return self.machine.disk / "ready.json"

    def command(self) -> Sequence[object]:
        path = self.machine.disk.parent / f"{self.name}.toml"
        path.write_text(self._configuration, "utf-8")
        self.ready_path.unlink(missing_ok=True)
        files = ("--config", path, "--data-dir", self.data, "--ready-file", self.ready_path)
        return [*RPCQM, "serve", *files]

    @property
    def target(self) -> LocalServer:
        """For clients on its own machine."""
        return LocalServer(ReadyFile.read(self.ready_path).socket)

    def run(self, *words: str, given: str = "", check: bool = True) -> str:
        """A command of the program on its own machine."""
        done = subprocess.run(
            self.machine.argv([*RPCQM, *words, "--data-dir", self.data]),
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=_environment(),
        )
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def jump(self, seconds: int) -> None:
        """Set its clock forward or back from now on."""
        draft = self.shift.with_suffix(".new")
        draft.write_text(f"{seconds}\n")
        draft.replace(self.shift)


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not name.startswith("RPCQM_")
    }


def node_settings(name: str, keys: Keys, log: Sequence[str], lease: int = LEASE) -> str:
    """Of a node of the bank; the log's servers are at these addresses."""
    servers = ", ".join(f'"tls://{address}:{CLIENTS}"' for address in log)
    return f"""\
{SETTINGS}[console]
host = "0.0.0.0"
certificate = "{keys.certificate}"
key = "{keys.key}"
longest_wait = 2
[binary]
retry_milliseconds = 200
back_off_milliseconds = 1000
[replica]
log = [{servers}]
node = "{name}"
credentials_file = "{keys.log.credentials}"
ca_file = "{keys.log.certificate}"
lease_milliseconds = {lease}
keep_bytes = 33554432
maximum_bytes = 67108864
refuse_after_milliseconds = 4000
"""


def other_settings(bank: str = f"{LAN}.1") -> str:
    """Of the queue manager that sends to the bank, which it reaches by one address."""
    return f"""\
{SETTINGS}[binary]
retry_milliseconds = 200
back_off_milliseconds = 1000
peers = "{BANK}={bank}:{BINARY}"
"""


class Gate:
    """The one address of the bank, as a balancer has it: connections go to whichever node says
    that it is ready, and end when another one is."""

    def __init__(self, nodes: Sequence[QueueManager], keys: Keys) -> None:
        self._nodes = nodes
        self._context = keys.context()
        self.active: QueueManager | None = None
        self.pace = 0.0
        """Seconds that each 4 KiB take in either direction."""
        self._lines: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, f"{LAN}.1", BINARY)
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        assert self._server is not None
        assert self._task is not None
        self._task.cancel()
        self._server.close()
        self._end_lines()

    def _end_lines(self) -> None:
        for writer in list(self._lines):
            writer.transport.abort()

    async def _watch(self) -> None:
        timeout = aiohttp.ClientTimeout(total=1)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                ready = await asyncio.gather(
                    *(self._is_ready(session, each) for each in self._nodes)
                )
                found = next(
                    (node for node, says in zip(self._nodes, ready, strict=True) if says), None
                )
                if found is not self.active:
                    self.active = found
                    self._end_lines()
                await asyncio.sleep(0.2)

    async def _is_ready(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        url = f"https://{node.machine.address}:{CONSOLE}/readyz"
        try:
            async with session.get(url, ssl=self._context) as answer:
                return answer.status == 200
        except (OSError, aiohttp.ClientError, TimeoutError):
            return False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        node = self.active
        if node is None:
            writer.transport.abort()
            return
        try:
            async with asyncio.timeout(1):
                there = await asyncio.open_connection(node.machine.address, BINARY)
        except (OSError, TimeoutError):
            writer.transport.abort()
            return
        self._lines |= {writer, there[1]}
        try:
            await asyncio.gather(
                _copy(reader, there[1], self.pace), _copy(there[0], writer, self.pace)
            )
        except asyncio.CancelledError:
            pass  # the loop ends, and asks such a task for its error
        finally:
            self._lines -= {writer, there[1]}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pace: float) -> None:
    """Pass on what comes, until either end goes away; then end both."""
    try:
        while data := await reader.read(1 << 12):
            writer.write(data)
            await writer.drain()
            if pace:
                await asyncio.sleep(pace)
    except OSError:
        pass
    finally:
        writer.transport.abort()
