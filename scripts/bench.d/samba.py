"""Calls that Samba serves too: the same PDUs to both, 16 connections, one load generator.

Samba's endpoint mapper (samba-dcerpcd of Debian's samba-common-bin) and `rpcqm serve` run in a
network namespace of their own, because Samba insists on port 135, and on one CPU; the load
generator has the other. The lookup asks for the elements of one interface that the server has.
The ratios are of calls per second of processor time (both servers keep theirs busy), which other
load on the machine changes little; the note has the rates.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

from figures import Figure, UnavailableError, attempt
from harness import (
    Script,
    load,
    pairs,
    pinned,
    processor_seconds,
    sampled_environment,
    server_cpu,
)

from rpcqm.codec.interface import Interface, TransferSyntax, Value
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.types.epm import (
    RPC_IF_ID,
    ept_lookup_handle_freeRequest,
    ept_lookupRequest,
)
from rpcqm.rpc.pdu import Bind, ContextElement, Request, SyntaxId
from rpcqm.rpc.presentation import NDR

DCERPCD = Path("/usr/libexec/samba/samba-dcerpcd")
CONNECTIONS = 16
PATIENCE = 60
ROWS = tuple(
    f"{call} over Samba's, {CONNECTIONS} connections"
    for call in (
        "mgmt is_server_listening",
        "ept_lookup_handle_free",
        "ept_lookup of one interface",
    )
)
EPM, MGMT = load_interface("epm"), load_interface("mgmt")
OURS = SyntaxId(load_interface("remoteread").uuid, 1)
SAMBAS = SyntaxId(UUID("338cd001-2244-31f1-aaaa-900038001003"), 1)
"""winreg, of which Samba has three elements."""

SETTINGS = """\
[global]
  server role = standalone server
  rpc start on demand helpers = false
  bind interfaces only = yes
  interfaces = lo
"""
DIRECTORIES = (
    "private dir",
    "lock directory",
    "state directory",
    "cache directory",
    "pid directory",
    "ncalrpc dir",
)


def bind(interface: Interface) -> bytes:
    syntax = SyntaxId(interface.uuid, *interface.version)
    return Bind(
        call_id=1,
        max_xmit_frag=5840,
        max_recv_frag=5840,
        p_context_elem=(ContextElement(0, syntax, (NDR,)),),
    ).pack()


def calls(interface: Interface, operation: str, request: Value, tail: bytes) -> Script:
    """One request over and over; every answer ends with `tail`."""
    called = interface.operation(operation)
    stub = called.encode_request(TransferSyntax.NDR, request)
    pdu = Request(call_id=2, p_cont_id=0, opnum=called.opnum, alloc_hint=len(stub), stub_data=stub)
    return Script(once=[bind(interface)], loop=[pdu.pack()], tail=tail)


def listening() -> Script:
    request = MGMT.operation("rpc_mgmt_is_server_listening").request_class()
    yes = (1).to_bytes(4, "little")
    return calls(MGMT, "rpc_mgmt_is_server_listening", request, bytes(4) + yes)


def freeing() -> Script:
    """A handle is freed that is none: what both servers answer with success."""
    request = ept_lookup_handle_freeRequest(entry_handle=bytes(20))
    return calls(EPM, "ept_lookup_handle_free", request, bytes(4))


def looking_up(interface: SyntaxId) -> Script:
    """The elements of one interface, all at once, so that no handle stays open."""
    request = ept_lookupRequest(
        inquiry_type=1,
        object=UUID(int=0),
        Ifid=RPC_IF_ID(Uuid=interface.uuid, VersMajor=interface.major, VersMinor=interface.minor),
        vers_option=1,
        entry_handle=bytes(20),
        max_ents=10,
    )
    return calls(EPM, "ept_lookup", request, bytes(4))


@contextmanager
def samba(directory: Path) -> Iterator["Server"]:
    """Samba's endpoint mapper with what it starts, at port 135."""
    lines = [SETTINGS.rstrip()]
    for name in DIRECTORIES:
        (directory / name).mkdir(parents=True)
        lines.append(f"  {name} = {directory / name}")
    configuration = directory / "smb.conf"
    configuration.write_text("\n".join(lines) + "\n", "utf-8")
    options = ["--libexec-rpcds", "-F", "-s", configuration, f"--log-basename={directory}"]
    with started([DCERPCD, *options]) as pid:
        wait_for(135, looking_up(SAMBAS))
        yield Server(pid, 135)


@contextmanager
def queue_manager(directory: Path) -> Iterator["Server"]:
    """The endpoint mapper of `rpcqm serve`."""
    ready = directory / "ready.json"
    options = ["--data-dir", directory / "data", "--ready-file", ready, "--epm-port", "0"]
    ports = ["--rpc-port", "0", "--qm2qm-port", "-1", "--binary-port", "-1"]
    argv = [sys.executable, "-m", "rpcqm", "serve", *options, *ports]
    with started(argv, os.environ | sampled_environment()) as pid:
        end = time.monotonic() + PATIENCE
        while not ready.exists():
            if time.monotonic() > end:
                raise RuntimeError("rpcqm serve did not start")
            time.sleep(0.05)
        yield Server(pid, int(json.loads(ready.read_text("utf-8"))["endpoints"]["epm"][1]))


@contextmanager
def started(argv: list[object], environment: dict[str, str] | None = None) -> Iterator[int]:
    quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    process = pinned(argv, server_cpu, **quiet, env=environment)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE)


def wait_for(port: int, script: Script) -> None:
    """Until a first call is answered."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            load(port, 1, script, seconds=0.05, warm_up=0)
        except RuntimeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


@dataclass
class Server:
    """A server under load, and what it has reached."""

    pid: int
    port: int
    rates: list[float] = field(default_factory=list)

    def calls_per_processor_second(self, script: Script) -> float:
        before = processor_seconds(self.pid)
        seen = load(self.port, CONNECTIONS, script, seconds=1.0, warm_up=0)
        self.rates.append(seen.calls_per_second)
        return seen.calls / (processor_seconds(self.pid) - before)


def compared(name: str, ours: Server, here: Script, theirs: Server, there: Script) -> Figure:
    ours.rates, theirs.rates = [], []
    measured = pairs(
        partial(ours.calls_per_processor_second, here),
        partial(theirs.calls_per_processor_second, there),
    )
    rates = [statistics.median(server.rates) for server in (ours, theirs)]
    note = f"; in fact {rates[0]:,.0f}/s against {rates[1]:,.0f}/s"
    return measured.figure(name, ours.pid, note)


def inside() -> list[Figure]:
    """What runs in the namespace."""
    figures: list[Figure] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        queue_manager(Path(directory) / "rpcqm") as ours,
        samba(Path(directory) / "samba") as theirs,
    ):
        scripts = [(each, each) for each in (listening(), freeing())]
        scripts.append((looking_up(OURS), looking_up(SAMBAS)))
        for name, (here, there) in zip(ROWS, scripts, strict=True):
            figures += attempt(name, partial(compared, name, ours, here, theirs, there))
    return figures


def outside() -> list[Figure]:
    """What the namespace has measured."""
    if not DCERPCD.exists():
        raise UnavailableError(
            "Samba's endpoint mapper (Debian package samba-common-bin) is missing"
        )
    unshare = ["unshare", "--net"]
    if os.geteuid():
        unshare += ["--user", "--map-root-user"]
    script = f'{shutil.which("ip")} link set lo up && exec "$@"'
    argv = [*unshare, "sh", "-c", script, "sh", sys.executable, __file__, "inside"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return [Figure(**values) for values in json.loads(done.stdout)]


def run() -> Iterator[Figure]:
    yield from attempt(ROWS, outside)


if __name__ == "__main__":
    if sys.argv[1:] == ["inside"]:
        print(json.dumps([asdict(each) for each in inside()]))
