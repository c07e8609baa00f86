"""Asks the system's resolver for addresses of hosts, in threads that nobody waits for (G425).

The system offers no look-up that ends by a deadline or can be given up. So each look-up has a
daemon thread of its own, and there are few of these; callers get an answer within the deadline, and
the end of the process joins no thread. Names that strangers invent delay only their own senders:
each sender has few threads at a time, and names given by the operator have threads that no sender
gets.
"""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial

from rpcqm.base.clock import Deadlines, Timers
from rpcqm.base.completion import Completion, completed, failed
from rpcqm.base.outlet import guarded

Senders = tuple[str, ...]
"""The senders that have given a name: accounts, or sources of messages."""
OPERATOR: Senders = ()
"""For names that the operator has given: peers, the directory, settings."""
THREADS = 8
"""Names that are resolved at the same time for all accounts and addresses.

Bound `names.threads` [names]: the name waits for its turn.
"""
THREADS_OF_ONE = 2
"""The same for one account or address.

Bound `names.threads_of_one` [names]: the name waits for its turn.
"""
OWN_THREADS = 4
"""The same for names of the configuration, of the directory and of this machine, besides.

Bound `names.own_threads` [names]: the name waits for its turn.
"""
OWN_THREADS_OF_ONE = 3
"""The same for names given by the operator, except for this machine's own name."""
WAITING = 4096
"""Names that wait to be resolved.

Bound `names.waiting` [names]: the name counts as not resolved, until it is tried again.
"""
WAITING_OF_ONE = 256
"""The same for one account or address.

Bound `names.waiting_of_one` [names]: the name counts as not resolved, until it is tried again.
"""
DEADLINE = 15_000
"""Time for a name to be resolved.

Bound `names.deadline` [ms]: the name counts as not resolved, until it is tried again.
"""
REMEMBERED = 30_000
"""Milliseconds for which a failure, or an answer that came too late, is remembered."""
NAMES = 4096
"""Names that could not be resolved and are not asked for again for half a minute.

Bound `names.remembered` [names]: the oldest is forgotten.
"""

_LOCAL = "localhost"

Addresses = tuple[str, ...]
Found = Addresses | OSError
SystemLookUp = Callable[[str], Addresses]
LookUp = Callable[[str], Awaitable[Addresses]]
"""The addresses of a host; raises OSError."""


def system_addresses(host: str) -> Addresses:
    """The system's answer, IPv4 first; it may take long. Raises OSError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except ValueError as error:  # no valid name has such a form
        raise socket.gaierror(socket.EAI_NONAME, str(error)) from error
    ordered = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in ordered))


@lru_cache(maxsize=1024)
def is_address(host: str) -> bool:
    """Whether a host is written as an address, perhaps with a scope; it needs no look-up."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


class _Question:
    """A name that one sender has asked for; `outcome` is None once its sender was answered."""

    __slots__ = ("host", "lane", "outcome", "pool", "working")

    def __init__(self, host: str, lane: str, pool: "_Pool") -> None:
        self.host, self.lane, self.pool = host, lane, pool
        self.outcome: Completion[Addresses] | None = Completion()
        self.working = False


class _Pool:
    """Threads that senders take in turns; `of_one` is how many of them one sender has."""

    def __init__(self, threads: int, of_one: int) -> None:
        self._threads, self._of_one = threads, of_one
        self._busy: Counter[str] = Counter()
        self._lanes: dict[str, deque[_Question]] = {}
        self.waiting = 0

    def waiting_of(self, lane: str) -> int:
        return len(self._lanes.get(lane, ()))

    def add(self, question: _Question) -> None:
        self._lanes.setdefault(question.lane, deque()).append(question)
        self.waiting += 1

    def next(self) -> _Question | None:
        """The next question, which gets a thread now; None if no question waits or no thread is
        free."""
        if self._busy.total() >= self._threads:
            return None
        for lane in self._lanes:
            if self._busy[lane] < self._of_one:
                return self._taken(lane)
        return None

    def _taken(self, lane: str) -> _Question:
        questions = self._lanes.pop(lane)
        question = questions.popleft()
        if questions:
            self._lanes[lane] = questions  # behind the other senders
        self.waiting -= 1
        self._busy[lane] += 1
        return question

    def leave(self, question: _Question) -> None:
        """Drop a question that has no thread yet: its caller has stopped waiting."""
        questions = self._lanes[question.lane]
        questions.remove(question)
        if not questions:
            del self._lanes[question.lane]
        self.waiting -= 1

    def over(self, question: _Question) -> None:
        """Count a question's thread as free again."""
        self._busy[question.lane] -= 1
        if not self._busy[question.lane]:
            del self._busy[question.lane]


class Resolver:
    """Asks the system; `call` runs something on the loop, from any thread."""

    def __init__(
        self,
        timers: Timers,
        call: Callable[[Callable[[], None]], object],
        look_up: SystemLookUp = system_addresses,
    ) -> None:
        self._timers, self._call, self._look_up = timers, call, look_up
        self._own = _Pool(OWN_THREADS, OWN_THREADS_OF_ONE)
        self._others = _Pool(THREADS, THREADS_OF_ONE)
        self._asked: dict[tuple[str, str], _Question] = {}
        self._deadlines = Deadlines(timers, DEADLINE)
        self._remembered: dict[str, tuple[int, Found]] = {}
        self._stopped = False

    def resolve(self, host: str, senders: Senders = OPERATOR) -> Completion[Addresses]:
        """The addresses of a host, IPv4 first. Fails with OSError.

        A name that several senders have given counts for the one with the fewest waiting names.
        """
        if is_address(host):
            return completed((host,))
        if self._stopped:
            return failed(OSError("the queue manager stops"))
        name = host.lower().rstrip(".")
        if not senders or name == _LOCAL:
            return self._ask(name, name if name == _LOCAL else "", self._own)
        remembered = self._recall(name)
        if remembered is not None:
            return _as_completion(remembered)
        return self._ask(name, min(senders, key=self._others.waiting_of), self._others)

    def addresses(self, host: str, senders: Senders = OPERATOR) -> Awaitable[Addresses]:
        """The same for a coroutine of asyncio."""
        outcome: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()

        def told(found: Completion[Addresses]) -> None:
            if outcome.done():
                return
            if found.error is not None:
                outcome.set_exception(found.error)
            else:
                outcome.set_result(found.result())

        self.resolve(host, senders).add_done_callback(told)
        return outcome

    def _ask(self, host: str, lane: str, pool: _Pool) -> Completion[Addresses]:
        asked = self._asked.get((lane, host))
        if asked is not None:
            return asked.outcome or failed(_no_answer(host))
        if pool.waiting >= WAITING or pool.waiting_of(lane) >= WAITING_OF_ONE:
            return failed(OSError("too many names wait to be resolved"))
        question = self._asked[lane, host] = _Question(host, lane, pool)
        assert question.outcome is not None
        pool.add(question)
        self._deadlines.add(question, partial(self._too_late, question))
        self._start(pool)
        return question.outcome

    def _start(self, pool: _Pool) -> None:
        while not self._stopped and (question := pool.next()) is not None:
            question.working = True
            work = partial(self._work, question)
            try:
                threading.Thread(target=work, name="resolver", daemon=True).start()
            except RuntimeError:  # the system has no thread left
                found = OSError("no thread can be started")
                self._call(partial(self._answered, question, found))

    def _work(self, question: _Question) -> None:
        """The body of a thread; the answer is dropped once the loop is closed."""
        found: Found
        try:
            found = self._look_up(question.host)
        except OSError as error:
            found = error
        with contextlib.suppress(RuntimeError):
            self._call(partial(self._answered, question, found))

    def _answered(self, question: _Question, found: Found) -> None:
        question.pool.over(question)
        del self._asked[question.lane, question.host]
        late = question.outcome is None
        if late or isinstance(found, OSError):
            self._remember(question.host, found)
        self._tell(question, found)
        self._start(question.pool)

    def _too_late(self, question: _Question) -> None:
        """A thread that still works stays in use until the system answers."""
        failure = _no_answer(question.host)
        if question.working:
            self._remember(question.host, failure)
        else:
            question.pool.leave(question)
            del self._asked[question.lane, question.host]
        self._tell(question, failure)

    def _tell(self, question: _Question, found: Found) -> None:
        outcome, question.outcome = question.outcome, None
        self._deadlines.cancel(question)
        if outcome is None:
            return
        if isinstance(found, OSError):
            outcome.fail(found)
        else:
            outcome.succeed(found)

    # Answers that are remembered

    def _recall(self, host: str) -> Found | None:
        until, found = self._remembered.get(host, (0, None))
        if found is not None and until <= self._timers.monotonic():
            del self._remembered[host]
            return None
        return found

    def _remember(self, host: str, found: Found) -> None:
        self._remembered.pop(host, None)
        self._remembered[host] = self._timers.monotonic() + REMEMBERED, found
        if len(self._remembered) > NAMES:
            del self._remembered[next(iter(self._remembered))]

    def stop(self) -> None:
        """Answer all waiting callers; threads that still work are left alone."""
        self._stopped = True
        for question in list(self._asked.values()):
            self._tell(question, OSError("the queue manager stops"))


def _as_completion(found: Found) -> Completion[Addresses]:
    return failed(found) if isinstance(found, OSError) else completed(found)


def _no_answer(host: str) -> OSError:
    return TimeoutError(f"nobody tells the address of {host}")


async def look_up(host: str) -> Addresses:
    """The addresses of a host, for a program that connects now and then. Raises OSError.

    A program that gives up, or ends, does not wait for the system's resolver.
    """
    if is_address(host):
        return (host,)
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Addresses] = loop.create_future()

    def told(found: Found) -> None:
        if outcome.done():
            return
        if isinstance(found, OSError):
            outcome.set_exception(found)
        else:
            outcome.set_result(found)

    def work() -> None:
        found: Found
        try:
            found = system_addresses(host)
        except OSError as error:
            found = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(told, found)

    threading.Thread(target=work, name="resolver", daemon=True).start()
    return await outcome


async def connect(
    make: Callable[[], asyncio.BaseProtocol], host: str, port: int, find: LookUp = look_up
) -> None:
    """Connect to the first address of a host that takes the connection. Raises OSError."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for address in await find(host):
        try:
            await loop.create_connection(guarded(make), address, port)
        except OSError as error:
            failure = failure or error
        else:
            return
    raise failure or OSError(f"{host} has no address")
