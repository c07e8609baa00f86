"""Permissions of a queue in words: who may do what, why, and changes after a page that says all."""

from dataclasses import replace

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.permissions import QUEUE, WELL_KNOWN, mask_of, permissions, rights_in
from rpcqm.console.asked import Asked, Fields, Page, Redirect, Shown
from rpcqm.console.fields import check_choice, field
from rpcqm.console.forms import link
from rpcqm.console.naming import Named, look, names_of_accounts, queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text
from rpcqm.operations.permission_words import described_explanation
from rpcqm.operations.permissions import (
    ACTIONS,
    LocksOutError,
    PermissionChange,
    PermissionsChangedError,
    PlannedPermissions,
    ShownPermissions,
)

PATH = "/console/queue/permissions"
PERMIT, ACCESS = "/console/queue/permit", "/console/queue/access"
OWNER = "owner"
"""What a form orders beside allowing, denying and revoking."""
_ACTIONS = (*ACTIONS, OWNER)
_OF_ALL = ("revoke", "revoke-denial")
"""Actions that are about all rights where a form names no right."""
_RIGHTS = [(word, f"right.{word.replace('-', '_')}") for word in QUEUE.words]
_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER


def in_words(mask: int) -> str:
    """What a mask lets somebody do."""
    return ", ".join(_right(each) for each in rights_in(mask))


def _right(word: str) -> str:
    return text(f"right.{word.replace('-', '_')}") if word in QUEUE.words else word


async def show(asked: Asked) -> Shown:
    """The owner and the entries, with the forms that change them."""
    name, __, called = look(asked, asked.query)
    shown = shown_permissions(asked, name)
    owner = shown.descriptor.owner
    return Shown(
        {
            "title": text("permissions.of", name=called.shown),
            "name": called,
            "owner": "" if owner is None else shown.names.of(str(owner)),
            "rows": [
                (str(each.sid), shown.names.of(str(each.sid)), each.allowed, each.denied)
                for each in permissions(shown.descriptor)
            ],
            "in_words": in_words,
            "may_change": asked.operations.permissions.may_change(asked.identity, name),
            "version": shown.version,
            "rights": _RIGHTS,
            "known": _known(asked),
        }
    )


def shown_permissions(asked: Asked, name: FormatName) -> ShownPermissions:
    """The permissions, with the names that pages have."""
    shown = asked.operations.permissions.shown(asked.identity, name)
    return replace(shown, names=names_of_accounts(asked))


def _known(asked: Asked) -> list[str]:
    """Names that may be written, as far as the caller may know them."""
    if not asked.identity.may_look:
        return [*WELL_KNOWN, asked.identity.name]
    return [*WELL_KNOWN, *(each.name for each in asked.operations.accounts.list(asked.identity))]


# Changing


def _wanted(fields: Fields) -> tuple[str, str, list[PermissionChange]]:
    """The action, whom it is about, and the changes of entries; raises MQError."""
    action, who = fields.text("action"), fields.text("who").strip()
    rights = [each for each in fields.all("right") if each in QUEUE.words]
    check_choice("permissions", "action", action, _ACTIONS)
    if not who:
        raise MQError(_INVALID, text("permit.nobody"))
    if action == OWNER:
        return action, who, []
    if not rights and action not in _OF_ALL:
        raise MQError(_INVALID, text("permit.no_rights"))
    return action, who, [PermissionChange(action, who, mask_of(rights))]


async def ask_permit(asked: Asked) -> Shown:
    """What will be so then, and whether the caller could not take it back."""
    name, __, called = look(asked, asked.query)
    action, who, changes = _wanted(asked.query)
    owner = who if action == OWNER else ""
    planned = asked.operations.permissions.planned(asked.identity, name, changes, owner)
    version = asked.query.text("version") or planned.before.version
    if version != planned.before.version:
        raise PermissionsChangedError
    rights = in_words(changes[0].rights) if changes else ""
    names = names_of_accounts(asked)
    key = f"permit.sure_{action.replace('-', '_')}"
    question = text(key, who=names.of(who), name=called.shown, rights=rights)
    hidden = {
        "queue": called.link,
        "action": action,
        "who": who,
        "version": version,
        "right": asked.query.all("right"),
    }
    return sure(
        question,
        "permit.submit",
        link(PATH, queue=called.link),
        hidden,
        _outcome(planned, asked, who),
        [field("permit", "lock_out", False, "check", required=True)] if planned.locks_out else (),
    )


def _outcome(planned: PlannedPermissions, asked: Asked, who: str) -> list[str]:
    """What each of those may do then that the change is about, and who is locked out."""
    names = names_of_accounts(asked)
    before = {each.sid: each for each in permissions(planned.before.descriptor)}
    after = {each.sid: each for each in permissions(planned.after)}
    lines = []
    for sid in dict.fromkeys([*before, *after]):
        was, is_now = before.get(sid), after.get(sid)
        if was == is_now:
            continue
        lines.append(
            text(
                "permit.then",
                who=names.of(str(sid)),
                allowed=in_words(is_now.allowed if is_now else 0) or text("permit.nothing"),
                denied=in_words(is_now.denied if is_now else 0) or text("permit.nothing"),
            )
        )
    if planned.locks_out:
        lines.append(text("permit.locks_out"))
    return lines or [text("permit.unchanged")]


async def permit(asked: Asked) -> Redirect:
    """Change the permissions, if they are still those that the page before has shown."""
    action, who, changes = _wanted(asked.form)
    name, owner = queue_in(asked.form), who if action == OWNER else ""
    version, lock_out = asked.form.text("version"), asked.form.checked("lock_out")
    if not version:
        raise MQError(_INVALID, text("wrong.form"))
    try:
        changed = asked.operations.permissions.change(
            asked.identity, name, changes, owner, version, lock_out
        )
    except LocksOutError as error:
        raise MQError(error.status, text("permit.lock_out_needed")) from None
    await settled(changed)
    queue = asked.form.text("queue")
    to = "/console/queue" if lock_out else PATH
    return Redirect(link(to, queue=queue), text("permit.done"))


# Explaining


async def show_access(asked: Asked) -> Shown:
    """What an account may do here, and by which entry."""
    name, __, called = look(asked, asked.query)
    account, token = asked.query.text("account").strip(), asked.query.text("by").strip()
    told: dict[str, object] = {}
    if account:
        found = asked.operations.permissions.explain(asked.identity, name, account, token)
        told = described_explanation(replace(found, names=names_of_accounts(asked)))
    else:
        asked.operations.permissions.shown(asked.identity, name)  # so that nobody asks in vain
    return Shown(
        {
            "title": _title(called, account),
            "name": called,
            "account": account,
            "by": token,
            "told": told,
            "right": _right,
            "known": _known(asked),
        }
    )


def _title(called: Named, account: str) -> str:
    if not account:
        return text("access.of", name=called.shown)
    return text("access.who", name=called.shown, who=account)


PAGES = (
    Page(PATH, "permissions.title", "permissions.html", show),
    Page(PERMIT, "permit.title", "ask.html", ask_permit, permit),
    Page(ACCESS, "access.title", "access.html", show_access),
)
