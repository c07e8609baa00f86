"""Accounts and tokens: making, deleting, another password; a token's text is shown once."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import TokenRight
from rpcqm.base.settling import settled
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import paged
from rpcqm.console.texts import text

PATH = "/console/accounts"
TABLES = ("accounts", "tokens")
GROUPS = ("administrators", "users", "guests", "observers")
DAY = 86_400_000


async def show(asked: Asked) -> Shown:
    """All accounts and all tokens."""
    identity, operations = asked.identity, asked.operations
    accounts = operations.accounts.list(identity)
    return Shown(
        {
            "accounts": paged(asked, PATH, accounts, "accounts", TABLES),
            "tokens": paged(asked, PATH, operations.tokens.list(identity), "tokens", TABLES),
            "names": [each.name for each in accounts],
            "rights": [each.value for each in TokenRight],
            "groups": GROUPS,
            "may_change": asked.identity.is_administrator,
            "now": asked.now,
        }
    )


def _password(asked: Asked) -> bytes:
    """The hash of a password that was written twice."""
    first, second = asked.form.text("password"), asked.form.text("again")
    if not first or first != second:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("accounts.differ"))
    return nt_hash(first)


async def add(asked: Asked) -> Redirect:
    """Make an account."""
    name, groups = asked.form.text("name").strip(), asked.form.all("group")
    hashed = _password(asked)
    await settled(asked.operations.accounts.add(asked.identity, name, hashed, groups))
    return Redirect(PATH, text("accounts.added", name=name))


async def show_password(asked: Asked) -> Shown:
    """The form for another password."""
    name = _known(asked, asked.query.text("name"))
    return Shown({"name": name})


async def set_password(asked: Asked) -> Redirect:
    """Give an account another password; whoever is logged on with the old one is so no more."""
    name = asked.form.text("name")
    await settled(asked.operations.accounts.set_password(asked.identity, name, _password(asked)))
    return Redirect(PATH, text("accounts.password_set", name=name))


async def ask_remove(asked: Asked) -> Shown:
    """What goes with an account."""
    name = _known(asked, asked.query.text("name"))
    tokens = asked.operations.tokens.list(asked.identity)
    number = sum(1 for each in tokens if each.account.casefold() == name.casefold())
    question = text("accounts.remove_sure", name=name, number=number)
    return sure(question, "accounts.remove", PATH, {"name": name})


async def remove(asked: Asked) -> Redirect:
    """Delete an account."""
    name = asked.form.text("name")
    await settled(asked.operations.accounts.remove(asked.identity, name))
    return Redirect(PATH, text("accounts.removed", name=name))


def _known(asked: Asked, name: str) -> str:
    for each in asked.operations.accounts.list(asked.identity):
        if each.name == name:
            return each.name
    raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("accounts.unknown"))


async def create_token(asked: Asked) -> Shown:
    """Make a token; this page is the only one that ever shows its text."""
    form = asked.form
    name, account = form.text("name").strip(), form.text("account")
    rights = [TokenRight(each) for each in form.all("right") if each in set(TokenRight)]
    if not rights:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("accounts.no_rights"))
    queues = [each.strip() for each in form.text("queues").split(",") if each.strip()]
    life = form.number("days") * DAY
    made = asked.operations.tokens.create(
        asked.identity, name, account, rights, queues or None, life
    )
    token = await settled(made)
    return Shown({"name": name, "text": token}, "token_made.html")


async def ask_delete_token(asked: Asked) -> Shown:
    """Whose token would end."""
    name = asked.query.text("name")
    for each in asked.operations.tokens.list(asked.identity):
        if each.name == name:
            question = text("accounts.delete_token_sure", name=name, account=each.account)
            return sure(question, "accounts.delete_token", PATH, {"name": name})
    raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("accounts.unknown"))


async def delete_token(asked: Asked) -> Redirect:
    """Delete a token."""
    name = asked.form.text("name")
    await settled(asked.operations.tokens.delete(asked.identity, name))
    return Redirect(PATH, text("accounts.token_deleted", name=name))


PAGES = (
    Page(
        PATH,
        "accounts.title",
        "accounts.html",
        show,
        add,
        entry="accounts.title",
        administrators=True,
    ),
    Page(f"{PATH}/password", "accounts.password", "password.html", show_password, set_password),
    Page(f"{PATH}/remove", "accounts.remove", "ask.html", ask_remove, remove),
    Page(f"{PATH}/tokens", "accounts.tokens", "accounts.html", show, create_token),
    Page(
        f"{PATH}/tokens/delete",
        "accounts.delete_token",
        "ask.html",
        ask_delete_token,
        delete_token,
    ),
)
