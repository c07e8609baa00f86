"""Several queue managers that know each other, and may ask each other."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rpcqm.testing import PrivateQueueManager, private_queue_manager


def free_ports(*names: str) -> dict[str, str]:
    """A free port for each name."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in names]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return {name: str(each.getsockname()[1]) for name, each in zip(names, sockets, strict=True)}


def written(ports: dict[str, str]) -> str:
    """Ports as the settings have those of peers."""
    return ", ".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())


def neighbours(
    stack: ExitStack, *names: str, accounts: Path | None = None, options: Sequence[str] = ()
) -> list[PrivateQueueManager]:
    """Queue managers that know each other's ports; with `accounts` they may ask each other."""
    ports, mappers = free_ports(*names), free_ports(*names)
    remote = f'[remote]\npeers = "{written(mappers)}"\ncredentials_file = "{accounts}"\n'
    return [
        stack.enter_context(
            private_queue_manager(
                (
                    *("--console-port", "0", "--binary-port", ports[name]),
                    *("--epm-port", mappers[name], *options),
                ),
                f'name = "{name}"\n[binary]\npeers = "{written(ports)}"\n'
                + ("" if accounts is None else remote),
            )
        )
        for name in names
    ]


def accounts_file(directory: Path, user: str, password: str = "secret") -> Path:
    """A file of the account that they log on with elsewhere."""
    path = directory / "remote.toml"
    path.write_text(f'user = "{user}"\npassword = "{password}"\n')
    path.chmod(0o600)
    return path
