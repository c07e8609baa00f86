"""Several queue managers that know each other, and may ask each other."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import ports_of


def written(ports: dict[str, int]) -> str:
    """Ports as the settings have those of peers."""
    return ", ".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())


def neighbours(
    stack: ExitStack,
    *names: str,
    accounts: Path | None = None,
    options: Sequence[str] = (),
    environments: Mapping[str, Mapping[str, str]] | None = None,
) -> list[PrivateQueueManager]:
    """Queue managers that know each other's ports; with `accounts` they may ask each other."""
    ports, mappers = ports_of(names), ports_of(names)
    remote = f'[remote]\npeers = "{written(mappers)}"\ncredentials_file = "{accounts}"\n'
    return [
        stack.enter_context(
            private_queue_manager(
                (
                    *("--console-port", "0", "--binary-port", str(ports[name])),
                    *("--epm-port", str(mappers[name]), *options),
                ),
                f'name = "{name}"\n[binary]\npeers = "{written(ports)}"\n'
                + ("" if accounts is None else remote),
                (environments or {}).get(name),
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
