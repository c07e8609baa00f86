"""Guesses at passwords are slowed by account and address together, never by the account alone."""

import pytest

from rpcqm.rpc.security import logon_throttle
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.rpc.security.logon_throttle import GuessThrottle
from tests.support.clock import SimulatedClock

HERE, THERE = "192.0.2.1", "192.0.2.2"
SECOND = 1000
MINUTE = 60 * SECOND


class Throttled:
    """Accounts whose passwords somebody guesses."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.throttle = GuessThrottle(self.clock)

    def admits(self, account: str = "alice", address: str = HERE) -> bool:
        try:
            self.throttle.admit(account, address)
        except AuthenticationError:
            return False
        return True

    def guess(self, times: int, account: str = "alice", address: str = HERE) -> int:
        """Guess wrong; how often the password was looked at."""
        looked_at = 0
        for _ in range(times):
            if self.admits(account, address):
                self.throttle.failed(account, address)
                looked_at += 1
        return looked_at

    def log_on(self, account: str = "alice", address: str = HERE) -> bool:
        """Give the right password; whether it was looked at."""
        admitted = self.admits(account, address)
        if admitted:
            self.throttle.succeeded(account, address)
        return admitted

    def delay(self) -> int:
        """Seconds until the next attempt is looked at."""
        seconds = 0
        while not self.admits():
            self.clock.advance(SECOND)
            seconds += 1
        return seconds


@pytest.fixture
def alice() -> Throttled:
    return Throttled()


@pytest.mark.bound("guard.free_guesses", "guard.first_delay")
def test_the_sixth_wrong_guess_in_a_minute_puts_the_next_one_off(alice: Throttled) -> None:
    assert alice.guess(5) == 5
    assert alice.admits()
    assert alice.guess(1) == 1
    assert not alice.admits()
    alice.clock.advance(999)
    assert not alice.admits()
    alice.clock.advance(1)
    assert alice.admits()


def test_five_guesses_a_minute_have_no_consequences(alice: Throttled) -> None:
    for _ in range(100):
        assert alice.guess(5) == 5
        alice.clock.advance(MINUTE)


def test_a_minute_is_any_sixty_seconds(alice: Throttled) -> None:
    for _ in range(5):
        alice.guess(1)
        alice.clock.advance(11 * SECOND)
    alice.clock.advance(4_999)
    assert alice.guess(1) == 1
    assert not alice.admits()


@pytest.mark.bound("guard.longest_delay")
def test_the_delay_doubles_up_to_five_minutes(alice: Throttled) -> None:
    alice.guess(5)
    delays = []
    for _ in range(11):
        assert alice.guess(1) == 1
        delays.append(alice.delay())
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_attempts_that_are_put_off_make_it_no_longer(alice: Throttled) -> None:
    alice.guess(6)
    assert alice.guess(1000) == 0
    assert alice.delay() == 1


def test_a_day_of_guessing_is_a_few_hundred_guesses(alice: Throttled) -> None:
    looked_at = 0
    for _ in range(24 * 60 * 6):
        looked_at += alice.guess(3)
        alice.clock.advance(10 * SECOND)
    assert looked_at < 310


def test_the_right_password_ends_it(alice: Throttled) -> None:
    alice.guess(8)
    alice.delay()
    alice.guess(1)
    assert not alice.log_on()
    alice.delay()
    assert alice.log_on()
    assert alice.guess(5) == 5
    assert alice.admits()


@pytest.mark.bound("guard.forgotten_after")
def test_who_guesses_no_more_is_slowed_anew_from_the_beginning(alice: Throttled) -> None:
    for _ in range(9):
        alice.guess(1)
        alice.delay()
    alice.guess(1)
    alice.delay()
    alice.clock.advance(10 * MINUTE - 1)
    alice.guess(1)
    assert alice.delay() > 10
    alice.clock.advance(10 * MINUTE)
    assert alice.guess(5) == 5
    assert alice.admits()


def test_an_account_is_never_locked_for_other_addresses(alice: Throttled) -> None:
    alice.guess(1000)
    assert not alice.admits()
    assert alice.log_on(address=THERE)
    assert not alice.admits(), "what happens elsewhere ends nothing here"


def test_other_accounts_of_the_address_are_not_slowed_by_one(alice: Throttled) -> None:
    alice.guess(1000)
    assert alice.log_on("bob")


def test_an_ipv6_network_of_64_bits_is_one_address(alice: Throttled) -> None:
    assert sum(alice.guess(1, address=f"2001:db8::{n:x}") for n in range(1, 100)) == 6
    assert alice.admits(address="2001:db8:0:1::1")


@pytest.mark.bound("guard.guesses_of_address")
def test_many_accounts_from_one_address_are_slowed_together(alice: Throttled) -> None:
    assert alice.log_on("bob")
    assert sum(alice.guess(1, f"user{number}") for number in range(100)) == 60
    assert not alice.admits("carol")
    assert alice.admits("bob"), "somebody else behind the same address"
    assert alice.admits("carol", THERE)
    alice.clock.advance(MINUTE - 1)
    assert not alice.admits("carol")
    alice.clock.advance(1)
    assert alice.admits("carol")


@pytest.mark.bound("guard.accounts_of_address")
def test_other_accounts_do_not_make_the_throttle_forget_one(alice: Throttled) -> None:
    alice.guess(6)
    for number in range(500):
        alice.guess(1, f"user{number}")
        alice.clock.advance(SECOND)
    assert alice.guess(1) == 1
    assert alice.delay() == 2
    (known,) = [*alice.throttle._calm.values(), *alice.throttle._slowed.values()]
    assert len(known.accounts) == logon_throttle.ACCOUNTS_OF_ADDRESS


@pytest.mark.bound("guard.addresses")
def test_other_addresses_do_not_make_the_throttle_forget_one(alice: Throttled) -> None:
    alice.guess(6)
    for number in range(3 * logon_throttle.ADDRESSES):
        alice.guess(5, "bob", f"10.0.{number >> 8}.{number & 255}")
    assert not alice.admits()
    assert len(alice.throttle._calm) == logon_throttle.ADDRESSES
    for number in range(logon_throttle.ADDRESSES + 1):
        alice.guess(6, "bob", f"10.0.{number >> 8}.{number & 255}")
    assert len(alice.throttle._slowed) == logon_throttle.ADDRESSES


@pytest.mark.bound("guard.logged_on", "guard.name_characters")
def test_what_is_remembered_is_bounded(alice: Throttled) -> None:
    for number in range(logon_throttle.LOGGED_ON + 1):
        alice.log_on(f"user{number}")
    assert len(alice.throttle._logged_on) == logon_throttle.LOGGED_ON
    alice.guess(1, "n" * 256)
    alice.guess(1, "n" * 1_000_000)
    (known,) = alice.throttle._calm.values()
    assert list(known.accounts) == ["n" * 256]
