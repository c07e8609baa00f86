"""A system whose resolver never answers for some names, and what is asked of it.

A queue manager in whose environment this is asks such a resolver: names below `invented` are never
answered, those below `fine` are 127.0.0.1.
"""

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rpcqm.testing import PrivateQueueManager
from tests.support.modules import modules_of

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


def threads(queue_manager: PrivateQueueManager) -> int:
    """How many threads its process has."""
    assert queue_manager.process is not None
    return len(list(Path(f"/proc/{queue_manager.process.pid}/task").iterdir()))
