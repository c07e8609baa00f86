"""The servers of the log, each on a machine of its own."""

import json
import shutil
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster.machines import Program, RemoteMachine

SERVER = shutil.which("nats-server")
STREAM = "rpcqm"
"""The log; there is a stream with what members tell each other besides."""
CLIENTS, ROUTES, MONITOR = 4222, 6222, 8222


@dataclass(frozen=True, slots=True)
class Access:
    """The files and the account by which nodes get at the log."""

    certificate: Path
    key: Path
    credentials: Path
    user: str = "bank"
    password: str = "a secret of the log"


class LogServer(Program):
    """A server of NATS; `addresses` are those of all of them."""

    def __init__(self, machine: RemoteMachine, addresses: Sequence[str], access: Access) -> None:
        super().__init__(machine)
        self._addresses = addresses
        self._access = access

    def command(self) -> Sequence[object]:
        assert SERVER is not None
        path = self.machine.disk / "server.conf"
        path.write_text(self._configuration(), "utf-8")
        return [SERVER, "--config", path]

    def _configuration(self) -> str:
        routes = ", ".join(f'"nats://{address}:{ROUTES}"' for address in self._addresses)
        here, access = self.machine.address, self._access
        store = f'store_dir: "{self.machine.disk}/log", max_file_store: 128MB'
        account = f'user: "{access.user}", password: "{access.password}"'
        lines = [
            f"server_name: {self.name}",
            f'listen: "{here}:{CLIENTS}"',
            f'http: "{here}:{MONITOR}"',
            f"jetstream {{ {store}, sync_interval: always }}",
            f'cluster {{ name: rpcqm, listen: "{here}:{ROUTES}", routes: [{routes}] }}',
            f'tls {{ cert_file: "{access.certificate}", key_file: "{access.key}" }}',
            f"authorization {{ {account} }}",
        ]
        return "\n".join(lines)

    def leader(self) -> str:
        """Which server leads the log, as this one believes; "" if it does not tell."""
        url = f"http://{self.machine.address}:{MONITOR}/jsz?streams=true"
        with suppress(OSError, ValueError, LookupError):
            with urllib.request.urlopen(url, timeout=1) as answer:
                told = json.load(answer)
            (account,) = told["account_details"]
            streams = {each["name"]: each for each in account["stream_detail"]}
            return str(streams[STREAM]["cluster"]["leader"])
        return ""
