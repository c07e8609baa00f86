"""A system whose resolver never answers for some names, and what is asked of it.

A queue manager in whose environment this is asks such a resolver: names below `invented` are never
answered, those below `fine` are 127.0.0.1.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rpcqm.base.resolver import OWN_THREADS_OF_ONE, THREADS
from rpcqm.testing import PrivateQueueManager
from tests.support.modules import modules_of
from tests.support.srmp.srmp_stranger import outgoing

PATIENCE = 30.0
_CODE = """\
import os, socket, threading
from pathlib import Path

ask = socket.getaddrinfo

def getaddrinfo(host, *rest, **more):
    if str(host).endswith((".invented", ".fine")):
        with Path({path!r}).open("a") as asked:
            asked.write(host + chr(10))
    if str(host).endswith(".invented"):
        threading.Event().wait()
    return ask("127.0.0.1" if str(host).endswith(".fine") else host, *rest, **more)

socket.getaddrinfo = getaddrinfo

if "MUTATION_UNDER_TEST" in os.environ:  # whose own module of this name is hidden by this one
    from tests.mutations.hook import install_from_environment

    install_from_environment()
"""


class Resolver:
    """What queue managers with its `environment` have asked."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._asked = place / "asked"
        self._asked.touch()
        (place / "sitecustomize.py").write_text(_CODE.format(path=str(self._asked)), "utf-8")
        self.environment: Mapping[str, str] = modules_of(place)

    @property
    def asked(self) -> list[str]:
        """The names, in the order in which they were looked up."""
        return self._asked.read_text("utf-8").split()

    @property
    def by_domain(self) -> Counter[str]:
        """How many names were looked up in each domain."""
        return Counter(name.partition(".")[2] for name in self.asked)

    def await_asked(self, domain: str, count: int = 1) -> None:
        """Wait until so many names of a domain have been looked up."""
        give_up = time.monotonic() + PATIENCE
        while self.by_domain[domain] < count:
            assert time.monotonic() < give_up, f"only {self.asked} were asked"
            time.sleep(0.02)


class InventedPlace:
    """A queue manager whose resolver never answers for some names."""

    def __init__(self, made: PrivateQueueManager, resolver: Resolver) -> None:
        self.made, self.resolver = made, resolver
        self._threads = self._count_threads()

    def lines(self, said: str) -> list[str]:
        """The lines of its log that say something."""
        return [line for line in self.made.log.splitlines() if said in line]

    def check(self, queues: int, names: int) -> None:
        """So many queues, and look-ups; nobody gets more threads than senders have."""
        self.resolver.await_asked("invented", names)
        assert len(outgoing(self.made)) == queues
        assert self.resolver.by_domain["invented"] == names
        assert self._count_threads() <= self._threads + THREADS + OWN_THREADS_OF_ONE + 1

    def _count_threads(self) -> int:
        assert self.made.process is not None
        return len(list(Path(f"/proc/{self.made.process.pid}/task").iterdir()))


P = TypeVar("P", bound=InventedPlace)


@contextmanager
def invented_place(kind: type[P], path: Path, option: str, configuration: str) -> Iterator[P]:
    """It runs with one more door, which the option names."""
    resolver = Resolver(path / "modules")
    made = PrivateQueueManager(
        path / "data",
        (option, "0"),
        configuration=configuration,
        environment=resolver.environment,
    )
    made.start()
    yield kind(made, resolver)
    assert made.stop() == 0  # which waits for no name, though none is ever resolved
