"""Orders that hold until somebody ends them: maintenance, and the network that is not used."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.fields import field
from rpcqm.console.forms import link
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text

PATH = "/console/machine"
HOME = "/console/overview"


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An order that begins or ends something; `of_network` says which of the two it is about."""

    word: str
    of_network: bool
    on: bool
    has_reason: bool = False


ORDERS = (
    StandingOrder("maintain", of_network=False, on=True, has_reason=True),
    StandingOrder("take", of_network=False, on=False),
    StandingOrder("disconnect", of_network=True, on=False, has_reason=True),
    StandingOrder("connect", of_network=True, on=True),
)


def offered(asked: Asked, maintained: bool, connected: bool) -> list[tuple[str, str]]:
    """Links to the pages of the orders that change something now, with their words."""
    if not asked.identity.is_administrator:
        return []
    now = {False: maintained, True: connected}
    return [
        (f"{PATH}/{each.word}", text(f"standing.{each.word}"))
        for each in ORDERS
        if now[each.of_network] is not each.on
    ]


async def ask(order: StandingOrder, asked: Asked) -> Shown:
    """What will be so until somebody ends it."""
    asked.operations.machine.check_may_order(asked.identity)
    fields = [field("standing", "reason", hint=True)] if order.has_reason else []
    question = text(f"standing.{order.word}_sure")
    return sure(question, f"standing.{order.word}", HOME, {}, fields=fields)


async def do(order: StandingOrder, asked: Asked) -> Redirect:
    """Carry out an order; one that holds already stays as it is, with the new reason."""
    machine = asked.operations.machine
    ordered = machine.connect if order.of_network else machine.maintain
    await settled(ordered(asked.identity, order.on, asked.form.text("reason").strip()))
    return Redirect(link(HOME), text(f"standing.{order.word}_done"))


def _page(order: StandingOrder) -> Page:
    shown: Callable[[Asked], Awaitable[Shown]] = partial(ask, order)
    done: Callable[[Asked], Awaitable[Redirect]] = partial(do, order)
    return Page(f"{PATH}/{order.word}", f"standing.{order.word}", "ask.html", shown, done)


PAGES = tuple(map(_page, ORDERS))
