"""Guesses at passwords, slowed by account and address together (G92).

An account alone never counts, because that would let strangers lock its owner out: an owner who
logs on from elsewhere notices nothing. An address alone counts only for attempts at all accounts
together, and then not for those accounts that have logged on from there.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TypeVar

from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock
from rpcqm.rpc.security.context import AuthenticationError

K = TypeVar("K")
V = TypeVar("V")

MINUTE = 60_000
"""Milliseconds over which guesses are counted."""
FREE_GUESSES = 5
"""Wrong passwords for one account from one address in a minute.

Bound `guard.free_guesses` [guesses]: the next attempt is refused unseen for a while.
"""
GUESSES_OF_ADDRESS = 60
"""Wrong passwords from one address in a minute, for all accounts together.

Bound `guard.guesses_of_address` [guesses]: accounts that have not logged on from there are refused
unseen for the rest of it.
"""
FIRST_DELAY = 1_000
"""Time for which the sixth wrong password puts off the next attempt; it doubles.

Bound `guard.first_delay` [milliseconds]: the next attempt is looked at.
"""
LONGEST_DELAY = 300_000
"""Time for which any wrong password puts off the next attempt.

Bound `guard.longest_delay` [milliseconds]: the next attempt is looked at.
"""
FORGOTTEN_AFTER = 600_000
"""Time without a wrong password, after a delay, for which the delay is remembered.

Bound `guard.forgotten_after` [milliseconds]: the next delay is the first again.
"""
ADDRESSES = 2048
"""Addresses remembered as having guessed wrong, and as many again that are slowed.

Bound `guard.addresses` [addresses]: the one that has guessed least recently is forgotten.
"""
ACCOUNTS_OF_ADDRESS = 64
"""Accounts that are remembered for one address.

More than GUESSES_OF_ADDRESS, so that within its minute no guess is forgotten.

Bound `guard.accounts_of_address` [accounts]: the account that is not slowed, and was guessed at
first, is forgotten.
"""
LOGGED_ON = 4096
"""Accounts, each with an address, that are remembered as having logged on.

Bound `guard.logged_on` [accounts]: the one that logged on least recently is forgotten.
"""
LONGEST_NAME = 256
"""Characters by which accounts are told apart.

Longer names must not fill the memory.

Bound `guard.name_characters` [characters]: the rest does not count.
"""


@dataclass(slots=True)
class _Guesses:
    """Wrong guesses at one account from one address; times are in monotonic milliseconds."""

    recent: deque[int] = field(default_factory=lambda: deque(maxlen=FREE_GUESSES + 1))
    delay: int = 0
    refused_until: int = 0

    def add(self, now: int) -> None:
        if self.delay and now - self.refused_until >= FORGOTTEN_AFTER:
            self.delay = 0
        self.recent.append(now)
        many = len(self.recent) > FREE_GUESSES and now - self.recent[0] < MINUTE
        if self.delay or many:
            self.delay = min(2 * self.delay or FIRST_DELAY, LONGEST_DELAY)
            self.refused_until = now + self.delay


@dataclass(slots=True)
class _Address:
    """The wrong guesses from one address; the account of the last guess stands last."""

    accounts: OrderedDict[str, _Guesses] = field(default_factory=OrderedDict)
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=GUESSES_OF_ADDRESS))

    @property
    def slowed(self) -> bool:
        return any(guesses.delay for guesses in self.accounts.values())

    def is_full(self, now: int) -> bool:
        return len(self.recent) == GUESSES_OF_ADDRESS and now - self.recent[0] < MINUTE

    def add(self, account: str, now: int) -> None:
        self.recent.append(now)
        guesses = self.accounts.pop(account, None) or self._made_room()
        guesses.add(now)
        self.accounts[account] = guesses

    def _made_room(self) -> _Guesses:
        if len(self.accounts) >= ACCOUNTS_OF_ADDRESS:
            calm = (name for name, guesses in self.accounts.items() if not guesses.delay)
            del self.accounts[next(calm, next(iter(self.accounts)))]
        return _Guesses()


class GuessThrottle:
    """The LogonThrottle of a queue manager: one for all of its listeners.

    From the sixth wrong guess in a minute on, an account is refused from that address without a
    look at the password: for a second, then for twice as long after each further wrong guess, up
    to five minutes. The right password, given after the delay, ends it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # An address that is slowed is not forgotten for those that have only guessed wrong.
        self._calm: OrderedDict[str, _Address] = OrderedDict()
        self._slowed: OrderedDict[str, _Address] = OrderedDict()
        self._logged_on: OrderedDict[tuple[str, str], None] = OrderedDict()

    def admit(self, account: str, address: str) -> None:
        """Raise AuthenticationError if an attempt comes too early."""
        if not self._calm and not self._slowed:
            return
        name, owner = account[:LONGEST_NAME], owner_of(address)
        known = self._known(owner)
        if known is None:
            return
        now = self._clock.monotonic()
        guesses = known.accounts.get(name)
        if guesses is not None and now < guesses.refused_until:
            raise AuthenticationError("too many wrong passwords for this account from this address")
        if known.is_full(now) and (name, owner) not in self._logged_on:
            raise AuthenticationError("too many wrong passwords from this address")

    def failed(self, account: str, address: str) -> None:
        """Count a wrong password, or an account that is not there."""
        owner = owner_of(address)
        known = self._calm.pop(owner, None) or self._slowed.pop(owner, None) or _Address()
        known.add(account[:LONGEST_NAME], self._clock.monotonic())
        _keep(self._slowed if known.slowed else self._calm, owner, known, ADDRESSES)

    def succeeded(self, account: str, address: str) -> None:
        """Forget the wrong passwords that came before the right one."""
        name, owner = account[:LONGEST_NAME], owner_of(address)
        known = self._known(owner)
        if known is not None:
            known.accounts.pop(name, None)
        _keep(self._logged_on, (name, owner), None, LOGGED_ON)

    def _known(self, owner: str) -> _Address | None:
        return self._calm.get(owner) or self._slowed.get(owner)


def _keep(table: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put an entry last, and drop the first one if there are too many."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > most:
        table.popitem(last=False)
