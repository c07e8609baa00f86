"""Rules of triggers: what is done for the messages of a queue, and how that goes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.settling import settled
from rpcqm.codec.trigger_rule import BOUNDS, CLASSES, Mode, TriggerRule, encode_rule, rule_of
from rpcqm.console.asked import Asked, Fields, Page, Redirect, Shown
from rpcqm.console.fields import Field, field
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.triggers import version_of

PATH = "/console/triggers"
EDIT = f"{PATH}/edit"
TABLES = ("triggers",)
_NUMBERS = tuple(BOUNDS)
_MAY_BE_MISSING = _NUMBERS[:5]
_PLAIN = ("label", "text", "xpath", "json_path", "sender", "source", "url", "send_to")
_DRAFT = TriggerRule("", "")


async def show(asked: Asked) -> Shown:
    """All rules, how they do, and the service that runs them."""
    operations = asked.operations.triggers
    triggers = operations.list(asked.identity)
    return Shown(
        {
            "triggers": paged(asked, PATH, triggers, "triggers", TABLES),
            "service": operations.holder(asked.identity),
            "may_change": asked.identity.is_administrator,
        }
    )


async def show_edit(asked: Asked) -> Shown:
    """The form of a rule, or of a new one."""
    name = asked.query.text("name")
    shown: dict[str, object] = {"may_change": asked.identity.is_administrator}
    if not name:
        queue = asked.query.text("queue")
        fields = _fields(replace(_DRAFT, queue=queue), new=True)
        return Shown(shown | {"name": "", "fields": fields, "version": ""})
    found = asked.operations.triggers.find(asked.identity, name)
    fields = _fields(found.rule, new=False)
    return Shown(shown | {"name": found.rule.name, "fields": fields, "version": version_of(found)})


def _fields(rule: TriggerRule, new: bool) -> list[Field]:
    members = encode_rule(rule)
    named = [_field("name", "", required=True)] if new else []
    texts = {name: _field(name, members[name], hint=name in _HINTED) for name in _PLAIN}
    numbers = {name: _field(name, _written(members[name]), "number") for name in _NUMBERS}
    program = _field("program", "\n".join(rule.program), "text", hint=True)
    classes = ("", *CLASSES)
    return [
        *named,
        _field("queue", rule.queue, required=True),
        _field("mode", str(rule.mode), "choice", choices=tuple(Mode)),
        *(texts[name] for name in ("label", "text", "xpath", "json_path")),
        *(numbers[name] for name in _MAY_BE_MISSING),
        _field("message_class", rule.message_class, "choice", choices=classes),
        *(texts[name] for name in ("sender", "source")),
        program,
        *(texts[name] for name in ("url", "send_to")),
        *(numbers[name] for name in _NUMBERS[5:]),
        _field("poison_queue", rule.poison_queue, hint=True),
        _field("enabled", rule.enabled, "check"),
    ]


_HINTED = frozenset({"label", "url", "send_to"})


def _field(name: str, value: object = "", kind: str = "line", **more: Any) -> Field:
    return field("triggers", name, value, kind, **more)


def _written(value: object) -> str:
    return "" if value is None else str(value)


def _rule(form: Fields, name: str) -> TriggerRule:
    """The rule of a form; raises MQError with a clause about what is wrong."""
    given = {each: form.number_or_none(each) for each in _NUMBERS}
    numbers = {each: number for each, number in given.items() if number is not None}
    members: Mapping[str, Any] = {
        "name": name,
        "queue": form.text("queue").strip(),
        "mode": form.text("mode"),
        "message_class": form.text("message_class"),
        "poison_queue": form.text("poison_queue").strip(),
        "enabled": form.checked("enabled"),
        "program": [line for line in form.text("program").splitlines() if line],
        **{each: form.text(each) for each in _PLAIN},
        **numbers,
    }
    try:
        return rule_of(members)
    except DecodeError as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(error)) from error


async def edit(asked: Asked) -> Redirect:
    """Make a rule, or change one."""
    form, triggers = asked.form, asked.operations.triggers
    known = form.text("known")
    rule = _rule(form, known or form.text("name").strip())
    if known:
        await settled(triggers.set(asked.identity, rule, form.text("version")))
    else:
        await settled(triggers.add(asked.identity, rule))
    said = "triggers.changed" if known else "triggers.added"
    return Redirect(PATH, text(said, name=rule.name))


async def switch(asked: Asked) -> Redirect:
    """Let a rule work, or rest."""
    triggers, on = asked.operations.triggers, asked.form.checked("enabled")
    rule = triggers.find(asked.identity, asked.form.text("name")).rule
    await settled(triggers.set(asked.identity, replace(rule, enabled=on)))
    return Redirect(PATH, text("triggers.works" if on else "triggers.rests", name=rule.name))


async def ask_remove(asked: Asked) -> Shown:
    """What ends with a rule."""
    rule = asked.operations.triggers.find(asked.identity, asked.query.text("name")).rule
    question = text("triggers.remove_sure", name=rule.name, queue=rule.queue)
    return sure(question, "triggers.remove", PATH, {"name": rule.name})


async def remove(asked: Asked) -> Redirect:
    """Forget a rule."""
    name = asked.form.text("name")
    await settled(asked.operations.triggers.remove(asked.identity, name))
    return Redirect(PATH, text("triggers.removed", name=name))


PAGES = (
    Page(
        PATH,
        "triggers.title",
        "triggers.html",
        show,
        switch,
        entry="triggers.title",
        administrators=True,
    ),
    Page(EDIT, "triggers.edit", "trigger.html", show_edit, edit),
    Page(f"{PATH}/remove", "triggers.remove", "ask.html", ask_remove, remove),
)
