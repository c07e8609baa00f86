"""`rpcqm trigger`: rules that say what is to be done for the messages of a queue."""

import argparse
import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import visible
from rpcqm.cli import trigger_test
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import Table, print_fields, print_json, told_time
from rpcqm.cli.parser import Parser, add_command, add_commands, amount_in, whole_number
from rpcqm.cli.session import with_server
from rpcqm.cli.trigger_rules import listed_rule, members_of, named, rule_from
from rpcqm.codec.trigger_rule import (
    CLASSES,
    LARGEST_NUMBER,
    LARGEST_RULE,
    LONGEST_BACK_OFF,
    LONGEST_RUN,
    MEMBERS,
    MOST_AT_ONCE,
    MOST_ATTEMPTS,
    PLACEHOLDERS,
    Mode,
    TriggerRule,
    read_rule,
    rule_of,
)

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient

_PRIORITY = whole_number(0, 7, "a priority")
_COUNT = whole_number(0, LARGEST_NUMBER, "a number")
_BACK_OFF = amount_in("s", 1, LONGEST_BACK_OFF, "a number of seconds")

DETAILS = f"""\
What is done is one of: a program (--run, the last option), an HTTP request (--post), a message
elsewhere (--send-to). A program gets the body on standard input. An argument that is one of
{", ".join(PLACEHOLDERS[:6])},
{", ".join(PLACEHOLDERS[6:])}
is the value of the message, which never becomes an option or a part of another argument: a value
that begins with `-` is refused, unless the rule has `--` before it. `rpcqm triggers run` runs the
rules; the queue manager keeps them."""


class _Option(NamedTuple):
    """An option that sets a member of a rule."""

    name: str
    member: str
    help: str
    metavar: str = "T"
    type: Any = str
    choices: tuple[str, ...] | None = None


_CONDITIONS = (
    _Option("--label", "label", "labels that match, with * and ?", "PATTERN"),
    _Option("--priority-from", "priority_from", "the lowest priority", "0-7", _PRIORITY),
    _Option("--priority-to", "priority_to", "the highest priority", "0-7", _PRIORITY),
    _Option("--class", "message_class", "the kind of message", "CLASS", choices=CLASSES),
    _Option("--text", "text", "a text that the body has in it"),
    _Option("--xpath", "xpath", "an XPath that holds for a body of XML", "PATH"),
    _Option("--json-path", "json_path", "a JSONPath that finds something in the body", "PATH"),
    _Option("--size-from", "size_from", "the least octets of a body", "N", _COUNT),
    _Option("--size-to", "size_to", "the most octets of a body", "N", _COUNT),
    _Option("--sender", "sender", "the sender's SID", "SID"),
    _Option("--source", "source", "the queue manager that it was sent at", "GUID"),
    _Option("--application-tag", "application_tag", "the application's number", "N", _COUNT),
)
_RUNNING = (
    _Option(
        "--parallelism",
        "parallelism",
        "how many at a time; with 1 (the default) they come in order",
        "N",
        whole_number(1, MOST_AT_ONCE, "a number"),
    ),
    _Option(
        "--time-limit",
        "time_limit",
        "after which time it is ended, such as 60 or 5min (default 60 s)",
        "TIME",
        amount_in("s", 1, LONGEST_RUN, "a number of seconds"),
    ),
    _Option("--back-off", "back_off", "wait after a failure (default 1 s)", "TIME", _BACK_OFF),
    _Option(
        "--longest-back-off",
        "longest_back_off",
        "up to which it doubles (default 300 s)",
        "TIME",
        _BACK_OFF,
    ),
    _Option(
        "--poison-after",
        "poison_after",
        "put a message aside after so many failures; 0: never (default 5)",
        "N",
        whole_number(0, MOST_ATTEMPTS, "a number"),
    ),
    _Option(
        "--poison-queue",
        "poison_queue",
        "where to: ;poison (the default), a queue, or dead-letter; '' passes it over",
        "QUEUE",
    ),
)
_ACTIONS = (
    _Option("--post", "url", "POST the body to an address", "URL"),
    _Option("--send-to", "send_to", "send a copy to another queue", "QUEUE"),
)


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "trigger",
        help="make, list, change and try rules of triggers",
        description="Make, list, change and try rules of triggers.",
    )
    triggers = add_commands(parser)
    _add_add(triggers)
    _add_set(triggers)
    _add_list(triggers)
    _add_show(triggers)
    _add_remove(triggers)
    trigger_test.add(triggers)
    _add_switch(triggers, "enable", "Let a rule work.", True)
    _add_switch(triggers, "disable", "Let a rule rest; what it does now goes on to its end.", False)


def _administer(arguments: argparse.Namespace, purpose: str, work: "Work") -> int:
    return with_server(arguments, purpose, work, administrators_only=True)


def _add_rule_options(parser: Parser) -> None:
    conditions = parser.add_argument_group("for which messages (all must hold)")
    actions = parser.add_argument_group("what is done")
    running = parser.add_argument_group("how")
    running.add_argument(
        "--mode",
        choices=tuple(map(str, Mode)),
        help="leave the message, remove it, or remove it if that went well (the default)",
    )
    groups = ((conditions, _CONDITIONS), (actions, _ACTIONS), (running, _RUNNING))
    for group, options in groups:
        for option in options:
            group.add_argument(
                option.name,
                dest=option.member,
                metavar=None if option.choices else option.metavar,
                type=option.type,
                choices=option.choices,
                help=option.help,
            )
    parser.takes_rest = "--run"
    actions.add_argument(
        parser.takes_rest,
        dest="program",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM",
        help="run a program; all that stands behind this option is its path and its arguments",
    )
    add_local_options(parser)


def _members(arguments: argparse.Namespace) -> dict[str, Any]:
    """The members of a rule that were given."""
    given = {name: getattr(arguments, name, None) for name in MEMBERS}
    if not given["program"]:
        del given["program"]
    members = {name: value for name, value in given.items() if value is not None}
    actions = [name for name in ("program", "url", "send_to") if members.get(name)]
    if len(actions) > 1:
        raise UsageMistake("Give one of --run, --post and --send-to.")
    return members


def _usable(members: Mapping[str, Any]) -> TriggerRule:
    """The same of a rule that is made or changed, by the checks that the queue manager makes."""
    from rpcqm.codec.trigger_expressions import check_usable  # only now: few commands need it

    rule = rule_from(members)
    try:
        check_usable(rule)
    except DecodeError as error:
        raise UsageMistake(f"The rule is wrong: {error}.") from None
    return rule


def _add_add(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "add",
        "Make a rule of a trigger.",
        [
            (
                "rpcqm trigger add resize pictures --run /usr/local/bin/resize -- '{label}'",
                "a program for each message, which leaves the queue if the program ends with 0",
            ),
            (
                "rpcqm trigger add alarm orders --mode peek --label 'urgent*' "
                "--post https://alarm.example/hook",
                "tells another system of some messages, and leaves them",
            ),
            (
                "rpcqm trigger add copy orders --mode peek --json-path '$[?@.total > 1000]' "
                "--send-to audit",
                "large orders are sent to another queue, too",
            ),
            ("rpcqm trigger add copy orders --json rule.json", "as `trigger show --json` prints"),
        ],
        run_add,
        DETAILS,
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    parser.add_argument("queue", metavar="QUEUE", help="whose messages it is for")
    parser.add_argument("--json", metavar="F", help="take the rest from a file; - is the input")
    parser.add_argument("--disabled", action="store_true", help="let it rest at first")
    _add_rule_options(parser)


def run_add(arguments: argparse.Namespace) -> int:
    """Make the rule."""
    members = _members(arguments)
    if arguments.json is not None:
        members = {**_members_of_file(arguments.json), **members}
    if arguments.disabled:
        members["enabled"] = False
    rule = _usable(members)

    async def work(client: "QueueManagerClient") -> None:
        await client.triggers.add(rule)
        await _tell_of_trouble(client, rule)

    return _administer(arguments, f"make the trigger `{rule.name}`", work)


async def _tell_of_trouble(client: "QueueManagerClient", rule: TriggerRule) -> None:
    """Say at once what keeps a rule from its work, such as a queue that is not there."""
    told = await listed_rule(client, rule.name)
    if rule.enabled and told["trouble"]:
        print(visible(f"`{rule.name}` is kept, but does not work yet: {told['trouble']}."))


def _members_of_file(path: str) -> dict[str, Any]:
    """The members of a rule in a file, without the state that `show --json` prints beside them."""
    if path == "-":
        text = sys.stdin.read(LARGEST_RULE + 1)
    else:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST_RULE + 1)
    try:
        found = json.loads(text) if len(text) <= LARGEST_RULE else read_rule(text)
    except DecodeError as error:
        raise UsageMistake(f"{path} cannot be used: {error}.") from None
    except (ValueError, RecursionError):
        raise UsageMistake(f"{path} cannot be used: it is no JSON.") from None
    if not isinstance(found, dict):
        raise UsageMistake(f"{path} cannot be used: it is no JSON object.")
    return members_of(found)


def _add_set(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "set",
        "Change a rule; what is not given stays.",
        [
            ("rpcqm trigger set resize --parallelism 4", "four at a time"),
            ("rpcqm trigger set resize --label ''", "for all labels again"),
        ],
        run_set,
        DETAILS,
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    parser.add_argument("--queue", metavar="QUEUE", help="whose messages it is for")
    _add_rule_options(parser)


def run_set(arguments: argparse.Namespace) -> int:
    """Change the rule."""
    changes = _members(arguments)
    if changes.keys() == {"name"}:
        raise UsageMistake("Say what to change.")
    for action in ("program", "url", "send_to"):
        if changes.get(action):
            others = {"program": (), "url": "", "send_to": ""}
            changes = {**others, **changes}

    async def work(client: "QueueManagerClient") -> None:
        found = await listed_rule(client, arguments.name)
        rule = _usable({**members_of(found), **changes, "name": found["name"]})
        await client.triggers.set(rule, found["version"])
        await _tell_of_trouble(client, rule)

    return _administer(arguments, f"change the trigger `{arguments.name}`", work)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "List the rules, how they do, and which service runs them.",
        [
            ("rpcqm trigger list", "names, queues, what is done, and how that goes"),
            ("rpcqm trigger list --json", "for a program"),
        ],
        run_list,
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_local_options(parser)


def run_list(arguments: argparse.Namespace) -> int:
    """List the rules."""

    async def work(client: "QueueManagerClient") -> None:
        told = await client.triggers.list()
        if arguments.json:
            print_json(told)
            return
        table = Table(["NAME", "QUEUE", "MODE", "DOES", ">DONE", ">FAILED", "STATE"])
        for each in told["triggers"]:
            rule = rule_of(members_of(each))
            state = state_of(each, told["service"])
            table.add(
                rule.name, rule.queue, rule.mode, rule.action, each["done"], each["failed"], state
            )
        table.print()
        print(_service(told["service"]))

    return _administer(arguments, "list the triggers", work)


def state_of(told: Mapping[str, Any], service: object) -> str:
    """How a rule does, in a few words."""
    if not told["enabled"]:
        return "disabled"
    if service is None:
        return "no service runs it"
    if told["trouble"]:
        return f"does not work: {told['trouble']}"
    if told["running"]:
        return f"works on {told['running']}"
    return "waits"


def _service(service: Mapping[str, Any] | None) -> str:
    if service is None:
        return "No service runs them; start one with `rpcqm triggers run`."
    since = told_time(service["since"])
    return f"{service['told']} runs them as {service['account']} since {since}."


def _add_show(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "show",
        "Show a rule and how it does.",
        [
            ("rpcqm trigger show resize", "its conditions, and what it has done"),
            ("rpcqm trigger show resize --json", "for a program, or to make it anew elsewhere"),
        ],
        run_show,
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_local_options(parser)


def run_show(arguments: argparse.Namespace) -> int:
    """Show the rule."""

    async def work(client: "QueueManagerClient") -> None:
        told = await client.triggers.list()
        found = named(told["triggers"], arguments.name)
        if arguments.json:
            print_json(found)
            return
        print_fields(_fields(found) | {"state": state_of(found, told["service"])})

    return _administer(arguments, f"show the trigger `{arguments.name}`", work)


def _fields(found: Mapping[str, Any]) -> dict[str, object]:
    """The members of a rule that are set, and its state."""
    told = {
        name.replace("_", " "): value
        for name, value in found.items()
        if value is not None and value != "" and value != [] and name not in ("enabled", "trouble")
    }
    if found["program"]:
        told["program"] = shlex.join(found["program"])
    for name in ("changed", "last_run", "next_try"):
        if found.get(name):
            told[name.replace("_", " ")] = told_time(found[name])
    return told


def _add_remove(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "remove",
        "Forget a rule; what it does now goes on to its end.",
        [("rpcqm trigger remove resize", "messages stay in their queue from now on")],
        run_remove,
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    add_local_options(parser)


def run_remove(arguments: argparse.Namespace) -> int:
    """Forget the rule."""

    async def work(client: "QueueManagerClient") -> None:
        await client.triggers.remove(arguments.name)

    return _administer(arguments, f"remove the trigger `{arguments.name}`", work)


def _add_switch(
    commands: "argparse._SubParsersAction[Parser]", word: str, summary: str, on: bool
) -> None:
    parser = add_command(
        commands, word, summary, [(f"rpcqm trigger {word} resize", "at once")], run_switch
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    parser.set_defaults(enabled=on, word=word)
    add_local_options(parser)


def run_switch(arguments: argparse.Namespace) -> int:
    """Let a rule work or rest."""

    async def work(client: "QueueManagerClient") -> None:
        found = await listed_rule(client, arguments.name)
        rule = replace(rule_from(members_of(found)), enabled=arguments.enabled)
        await client.triggers.set(rule, found["version"])
        await _tell_of_trouble(client, rule)

    return _administer(arguments, f"{arguments.word} the trigger `{arguments.name}`", work)
