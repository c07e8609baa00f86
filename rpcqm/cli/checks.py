"""What `rpcqm doctor` looks at: the machine, the files, the doors, and what callers would meet."""

import asyncio
import enum
import os
import re
import resource
import shutil
import socket
import stat
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from rpcqm.base.addresses import reachable
from rpcqm.base.admission import room_for_connections
from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.client.ready import ReadyFile
from rpcqm.config import Configuration, ConfigurationError
from rpcqm.config.limits_reference import bounds

SYNCS = 20
SLOW_SYNC = 0.02
"""Seconds; every recoverable message waits for one."""
MIB = 1 << 20
WINDOWS_PORT = 135
BOUNDS = "bounds"
TIMEOUT = 5.0
_ACCOUNT_LINE = re.compile(r"[^:\n]+:\d+:[^:\n]{32}:[0-9A-F]{32}:[^:\n]*:LCT-[0-9A-F]{8}:?")


class Level(enum.Enum):
    """How bad it is."""

    GOOD = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one look has shown, as a sentence."""

    subject: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class CheckedMachine:
    """What is looked at: how it is configured, and where it runs, if it does."""

    configuration: Configuration
    running: ReadyFile | None


Check = Callable[[CheckedMachine], Iterator[CheckResult]]


def check_files(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The data directory: that it can be written, and that nobody else can read it."""
    path = patient.configuration.data_dir
    if not path.exists():
        yield CheckResult(
            "files", Level.WARNING, f"{path} is not there yet; the first start makes it."
        )
        return
    for directory in (path, path / "messages"):
        if directory.exists() and not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            yield CheckResult(
                "files", Level.PROBLEM, f"{directory} cannot be written by this user."
            )
            return
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) & ~(stat.S_IXGRP | stat.S_IXOTH):
        text = f"Others may look into {path}; `chmod 711 {path}` lets them reach the socket only."
        yield CheckResult("files", Level.WARNING, text)
    else:
        yield CheckResult("files", Level.GOOD, f"{path} can be written, and only by its owner.")


def check_accounts(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The account file: private, readable, and not empty."""
    path = patient.configuration.data_dir / "accounts"
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_text("utf-8")
    except FileNotFoundError:
        mode, text = 0o600, ""
    except (OSError, ValueError) as error:
        yield CheckResult("accounts", Level.PROBLEM, f"{path} cannot be read: {error}.")
        return
    if mode & 0o077:
        yield CheckResult("accounts", Level.PROBLEM, f"Others may read {path}: `chmod 600 {path}`.")
    wrong = [n for n, line in enumerate(text.splitlines(), 1) if not _ACCOUNT_LINE.fullmatch(line)]
    if wrong:
        yield CheckResult(
            "accounts", Level.PROBLEM, f"{path}:{wrong[0]}: is no line of an account."
        )
    elif not text:
        text = "There is no account, so nobody can log on over the network: `rpcqm user add NAME`."
        yield CheckResult("accounts", Level.WARNING, text)
    else:
        yield CheckResult("accounts", Level.GOOD, f"{len(text.splitlines())} can log on.")


def check_keys(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The files with keys and passwords that are configured: usable, and nobody else's."""
    # Only now, because cryptography takes time to load.
    from rpcqm.binary.own_keys import load_key
    from rpcqm.config.remote_accounts import load_remote_accounts

    binary, credentials = patient.configuration.binary, patient.configuration.remote
    readers: list[tuple[str, Callable[[], object]]] = [
        (path, partial(load_key, path))
        for path in (binary.signing_key, binary.encryption_key)
        if path
    ]
    if path := credentials.credentials_file:
        readers.append((str(path), partial(load_remote_accounts, Path(path))))
    for name, read in readers:
        try:
            read()
        except OSError as error:
            yield CheckResult("keys", Level.PROBLEM, f"{name} cannot be read: {error.strerror}.")
        except (ValueError, ConfigurationError) as error:
            yield CheckResult("keys", Level.PROBLEM, f"{str(error).rstrip('.')}.")
        else:
            yield CheckResult("keys", Level.GOOD, f"{name} can be read, and only by its owner.")


def check_disk(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Room, and how long a sync takes."""
    path = _existing(patient.configuration.data_dir)
    free, reserve = shutil.disk_usage(path).free // MIB, patient.configuration.storage.reserve
    if free < reserve:
        text = f"{free:,} MiB are free, less than storage.reserve; new messages are refused."
        yield CheckResult("disk", Level.PROBLEM, text)
    else:
        yield CheckResult("disk", Level.GOOD, f"{free:,} MiB are free.")
    try:
        seconds = _sync_seconds(path)
    except OSError as error:
        yield CheckResult("disk", Level.PROBLEM, f"{path} cannot be written: {error.strerror}.")
        return
    level = Level.GOOD if seconds < SLOW_SYNC else Level.WARNING
    yield CheckResult(
        "disk", level, f"A sync takes {seconds * 1000:.1f} ms (the median of {SYNCS})."
    )


def _existing(path: Path) -> Path:
    """The directory itself, or the nearest one above it that is there."""
    path = path.absolute()
    return next(above for above in (path, *path.parents) if above.is_dir())


def _sync_seconds(directory: Path) -> float:
    taken = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            os.pwrite(file.fileno(), bytes(4096), 0)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def check_clock(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Times go into messages, and logging on by Kerberos compares them."""
    newest = _newest(patient.configuration.data_dir)
    if newest > time.time() + 60:
        text = "The clock is behind the newest file of the data directory: it was set back."
        yield CheckResult("clock", Level.PROBLEM, text)
    synchronized = _synchronized()
    if synchronized is None:
        yield CheckResult(
            "clock", Level.WARNING, "It cannot be told whether the clock is kept right."
        )
    elif synchronized:
        yield CheckResult("clock", Level.GOOD, "The clock is kept right by the network's time.")
    else:
        yield CheckResult("clock", Level.WARNING, "Nothing keeps the clock right (NTP).")


def _newest(directory: Path) -> float:
    try:
        return max((entry.stat().st_mtime for entry in directory.iterdir()), default=0.0)
    except OSError:
        return 0.0


def _synchronized() -> bool | None:
    """What the system says, None where it says nothing."""
    command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return {"yes": True, "no": False}.get(said.stdout.strip())


def check_limits(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Every connection takes a file descriptor, through whichever door it comes."""
    allowed = _open_files_allowed(patient.running)
    wanted = patient.configuration.limits.connections
    room = wanted if allowed is None else min(wanted, room_for_connections(allowed))
    if room < wanted:
        text = (
            f"{allowed:,} open files are allowed, which leaves room for {room:,} connections of "
            f"all doors together, fewer than limits.connections ({wanted:,})."
        )
        yield CheckResult("limits", Level.WARNING, text)
    else:
        yield CheckResult("limits", Level.GOOD, f"Enough open files for {wanted:,} connections.")
    used = None if patient.running is None else _open_files(patient.running)
    if used is not None:
        yield CheckResult("limits", Level.GOOD, f"{used:,} files and connections are open now.")


def _open_files_allowed(running: ReadyFile | None) -> int | None:
    """How many files may be open, None for any number: here, or where the process runs."""
    pid = os.getpid() if running is None else running.pid
    try:
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    except OSError:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A queue manager raises its limit as far as it may when it starts.
    allowed = hard if running is None else soft
    return None if allowed == resource.RLIM_INFINITY else allowed


def _open_files(running: ReadyFile) -> int | None:
    """How many are open in a process; None if it is somebody else's."""
    try:
        return len(os.listdir(f"/proc/{running.pid}/fd"))
    except OSError:
        return None


def check_bounds(patient: CheckedMachine) -> Iterator[CheckResult]:
    """What holds for callers, one line for each part of the queue manager."""
    held = patient.configuration
    for part, group in groupby(bounds(), key=lambda bound: bound.name.partition(".")[0]):
        listed = ", ".join(f"{bound.name} {bound.value(held):,}" for bound in group)
        yield CheckResult(BOUNDS, Level.GOOD, f"In force of {part}: {listed}.")


def check_name(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Clients call by name, and queues are named with it."""
    name = patient.configuration.name
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        text = f"`{name}` has no address here; clients need one, by DNS or in their hosts file."
        yield CheckResult("name", Level.WARNING, text)
        return
    listed = ", ".join(sorted(found))
    if all(address.startswith("127.") or address == "::1" for address in found):
        text = f"`{name}` is {listed} here; see that clients find another address by DNS."
        yield CheckResult("name", Level.WARNING, text)
    else:
        yield CheckResult("name", Level.GOOD, f"`{name}` is {listed}.")


def check_ports(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The doors of a running queue manager answer; those of another one are free."""
    if patient.running is None:
        yield from _free_ports(patient.configuration)
        return
    for door, (host, port) in patient.running.endpoints.items():
        if door in ("http", "https"):  # `http_checks` asks them, and leaves no broken TLS behind
            continue
        try:
            socket.create_connection((reachable(host), port), TIMEOUT).close()
        except OSError as error:
            text = f"Nobody answers at {host}, port {port}: {error.strerror}."
            yield CheckResult(f"{door} door", Level.PROBLEM, text)
        else:
            yield CheckResult(f"{door} door", Level.GOOD, f"It answers at {host}, port {port}.")


def _free_ports(configuration: Configuration) -> Iterator[CheckResult]:
    yield CheckResult("queue manager", Level.WARNING, "None runs on the data directory.")
    for door in ("epm", "rpc", "qm2qm", "binary", "http", "https"):
        port = getattr(configuration, f"{door}_port")
        if port is None or port <= 0:
            continue
        try:
            with socket.socket(_family(configuration.host)) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((configuration.host, port))
        except OSError as error:
            text = f"Port {port} of {configuration.host} cannot be had: {error.strerror}."
            yield CheckResult(f"{door} door", Level.PROBLEM, text)
        else:
            yield CheckResult(f"{door} door", Level.GOOD, f"Port {port} can be had.")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def check_windows(patient: CheckedMachine) -> Iterator[CheckResult]:
    """What a Windows client would see: the endpoint mapper, then RemoteRead."""
    running = patient.running
    if running is None:
        return
    if "epm" not in running.endpoints or "rpc" not in running.endpoints:
        text = "It would find nothing: the endpoint mapper or the rpc door is switched off."
        yield CheckResult("Windows", Level.PROBLEM, text)
        return
    host, port = running.endpoints["epm"]
    if host.startswith("127.") or host == "::1":
        text = f"It would not reach {host}, which is this machine's own; set `host`."
        yield CheckResult("Windows", Level.WARNING, text)
    if port != WINDOWS_PORT:
        text = f"It would ask at port {WINDOWS_PORT}, where nothing of ours is; set `epm_port`."
        yield CheckResult("Windows", Level.WARNING, text)
    yield _asked_as_windows_would(reachable(host), port)


def _asked_as_windows_would(host: str, port: int) -> CheckResult:
    # Only now, because the interfaces take time to load.
    from rpcqm.codec.interface import load
    from rpcqm.codec.types.remoteread import R_GetServerPortRequest
    from rpcqm.rpc.client import RpcClient
    from rpcqm.rpc.endpoint_mapper import resolve

    async def ask() -> tuple[int, int]:
        interface = load("remoteread")
        found = await resolve(host, port, interface)
        async with await RpcClient.connect_tcp(host, found) as client:
            binding = await client.bind(interface)
            response = await binding.send(R_GetServerPortRequest()).response()
            return found, response.result

    try:
        found, told = asyncio.run(asyncio.wait_for(ask(), TIMEOUT))
    except (OSError, TimeoutError, RpcFault, DecodeError) as error:
        text = f"The endpoint mapper leads to no RemoteRead: {str(error) or type(error).__name__}."
        return CheckResult("Windows", Level.PROBLEM, text)
    if found != told:
        text = f"The endpoint mapper says port {found}, RemoteRead itself {told}."
        return CheckResult("Windows", Level.PROBLEM, text)
    text = f"The endpoint mapper leads it to RemoteRead at port {found}, which answers."
    return CheckResult("Windows", Level.GOOD, text)


CHECKS: tuple[Check, ...] = (
    check_files,
    check_accounts,
    check_keys,
    check_disk,
    check_clock,
    check_limits,
    check_bounds,
    check_name,
    check_ports,
    check_windows,
)
