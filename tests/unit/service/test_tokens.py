"""Tokens: what is kept of them, whom they are good for, and when they end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import TokenRight
from rpcqm.service import tokens as tokens_module
from rpcqm.service.accounts import Accounts
from rpcqm.service.tokens import LONGEST_LIFE, MOST_QUEUES, tokens_of
from tests.support.queue_manager import RunningQueueManager, refusal

HASH = bytes(range(16))
DAY = 86_400_000


class World:
    """A queue manager with accounts and tokens."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "accounts"
        self.directory.mkdir()
        self.qm = RunningQueueManager(directory / "data")
        self._open()
        self.add("alice")

    def _open(self) -> None:
        self.accounts = Accounts(self.qm.store, self.directory, clock=self.qm.clock)
        self.tokens = tokens_of(self.qm.engine, self.accounts)
        self.qm.settle()

    def add(self, name: str, *groups: str) -> None:
        self.qm.done(self.accounts.add(name, HASH, groups))

    def restart(self) -> None:
        self.qm.restart()
        self._open()

    def crash(self) -> None:
        self.qm.crash()
        self._open()

    def create(self, name: str = "shop", account: str = "alice", **more: object) -> str:
        return self.qm.done(self.tokens.create(name, account, **more))  # type: ignore[arg-type]

    def is_good(self, text: str) -> bool:
        return self.tokens.verify(text) is not None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.qm.stop()


@pytest.fixture(params=[World.restart, World.crash], ids=["restart", "crash"])
def again(request: pytest.FixtureRequest) -> Callable[[World], None]:
    """What a token must outlive."""
    begin: Callable[[World], None] = request.param
    return begin


def test_a_token_is_its_account_with_a_scope(world: World, again: Callable[[World], None]) -> None:
    rights = frozenset({TokenRight.PEEK, TokenRight.SEND})
    text = world.create(rights=rights, queues=["Orders", r".\private$\returns"])
    again(world)
    identity = world.tokens.verify(text)
    account = world.accounts.identity("alice", "")
    assert identity is not None
    assert account is not None
    assert (identity.name, identity.sid, identity.groups) == (
        account.name,
        account.sid,
        account.groups,
    )
    assert identity.scope is not None
    assert identity.scope.token == "shop"
    assert identity.scope.rights == rights
    assert identity.scope.queues == frozenset({r"private$\orders", r"private$\returns"})


def test_only_a_digest_of_a_token_is_kept(world: World) -> None:
    text = world.create()
    secret = text[len("rpcqm_0123456789abcdef_") :]
    assert len(secret) == 43
    world.qm.store.close()
    for path in [*world.directory.rglob("*"), *world.qm.directory.rglob("*")]:
        if path.is_file():
            for kept in (secret.encode(), secret.encode().hex().encode()):
                assert kept not in path.read_bytes(), path
    world.qm._start()


def test_no_two_tokens_are_equal(world: World) -> None:
    assert len({world.create(f"t{number}") for number in range(50)}) == 50


@pytest.mark.parametrize("change", [
    lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
    lambda text: text[:6] + ("0" if text[6] != "0" else "1") + text[7:],
    lambda text: text[:-1],
    lambda text: text + "\n",
    lambda text: text.upper(),
    lambda text: text.removeprefix("rpcqm_"),
    lambda text: "",
    lambda text: "rpcqm_" + "\udcff" * 60,
])  # fmt: skip
def test_a_token_that_is_not_quite_right_is_nobody(
    world: World, change: Callable[[str], str]
) -> None:
    text = world.create()
    assert world.is_good(text)
    assert not world.is_good(change(text))


def test_the_secret_is_compared_also_for_an_unknown_token(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []

    def compare_digest(digest: bytes, expected: bytes) -> bool:
        compared.append(expected)
        return digest == expected

    monkeypatch.setattr("rpcqm.service.tokens.hmac.compare_digest", compare_digest)
    text = world.create()
    for tried in (text, text.replace(text[6:22], "0" * 16), "nonsense"):
        world.is_good(tried)
    assert [len(each) for each in compared] == [32, 32, 32]


def test_a_token_ends_at_its_moment(world: World, again: Callable[[World], None]) -> None:
    text, stays = world.create(life=30 * DAY), world.create("stays")
    world.qm.advance(30 * DAY - 1)
    assert world.is_good(text)
    world.qm.advance(1)
    assert not world.is_good(text)
    again(world)
    assert not world.is_good(text)
    assert world.is_good(stays)


def test_a_deleted_token_is_good_for_nothing_at_once(
    world: World, again: Callable[[World], None]
) -> None:
    text, other = world.create(), world.create("other")
    deleted = world.tokens.delete("SHOP")
    assert not world.is_good(text)
    world.qm.done(deleted)
    again(world)
    assert not world.is_good(text)
    assert world.is_good(other)
    assert [token.name for token in world.tokens.list()] == ["other"]
    assert refusal(world.tokens.delete, "shop") == "STATUS_OBJECT_NAME_NOT_FOUND"


def test_a_token_is_told_when_it_is_durable(world: World) -> None:
    created = world.tokens.create("shop", "alice")
    assert not created.done
    world.crash()
    assert world.tokens.list() == []


def test_a_token_deleted_before_it_was_durable_is_good_for_nothing(world: World) -> None:
    created = world.tokens.create("shop", "alice")
    world.tokens.delete("shop")
    assert not world.is_good(world.qm.done(created))


def test_tokens_go_with_their_account(world: World, again: Callable[[World], None]) -> None:
    world.add("bob")
    text, other = world.create(), world.create("other", "bob")
    world.qm.done(world.accounts.remove("alice"))
    assert not world.is_good(text)
    world.add("alice")
    again(world)
    assert not world.is_good(text)
    assert world.is_good(other)
    assert [token.name for token in world.tokens.list()] == ["other"]


def test_the_bearer_of_a_part_of_an_administrator_is_none(world: World) -> None:
    world.add("ops", "administrators")
    whole = world.tokens.verify(world.create("whole", "ops"))
    managing = world.create("managing", "ops", rights={TokenRight.MANAGE})
    one = world.create("one", "ops", queues=["orders"])
    assert whole is not None
    assert whole.is_administrator
    for text in (managing, one):
        identity = world.tokens.verify(text)
        assert identity is not None
        assert not identity.is_administrator


@pytest.mark.parametrize("name", ["", " shop", "a\nb", "\u202eshop", "n" * 65])
def test_a_wrong_name_is_refused(world: World, name: str) -> None:
    assert refusal(world.tokens.create, name, "alice") == "STATUS_INVALID_PARAMETER"


def test_what_is_not_there_or_there_already_is_refused(world: World) -> None:
    world.create()
    assert refusal(world.tokens.create, "Shop", "alice") == "STATUS_OBJECT_NAME_COLLISION"
    assert refusal(world.tokens.create, "new", "nobody") == "STATUS_NO_SUCH_USER"
    assert refusal(world.tokens.create, "new", "alice", ()) == "STATUS_INVALID_PARAMETER"
    with pytest.raises(MQError, match="ILLEGAL_QUEUE_PATHNAME"):
        world.tokens.create("new", "alice", queues=["a;b;c"])
    assert [token.name for token in world.tokens.list()] == ["shop"]


@pytest.mark.bound("tokens.longest_life", "tokens.queues_of_token")
def test_life_and_queues_of_a_token_are_bounded(world: World) -> None:
    names = [f"q{number}" for number in range(MOST_QUEUES + 1)]
    world.create(queues=names[:-1], life=LONGEST_LIFE)
    for more in ({"queues": names}, {"life": LONGEST_LIFE + 1}, {"life": -1}):
        with pytest.raises(MQError, match="STATUS_INVALID_PARAMETER"):
            world.create("new", **more)


@pytest.mark.bound("tokens.in_all")
def test_there_are_so_many_tokens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "MOST_TOKENS", 2)
    world.create()
    world.create("other")
    refused = refusal(world.tokens.create, "new", "alice")
    assert refused == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    world.qm.done(world.tokens.delete("shop"))
    world.create("new")
