"""`rpcqm cluster`: the nodes of a replicated log, and which of them is the queue manager."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import FaultStatus, MQError, NtStatus, RpcFault
from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.output import ProgressDisplay, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.store.replication import Place

STATUS = """\
A standby tells it, too. What is said of other nodes is what they said last, some seconds ago."""

PROMOTE = """\
Ask it of the standby that is to take over. Whoever is primary answers nobody any more as soon as
the log has the takeover, and becomes a standby by itself. Without a quorum of the log's servers
nobody takes over. `rpcqm cluster switch-over` is quicker where the primary is well."""

SWITCH_OVER = """\
Ask it of the primary: it ends what it is doing, says in the log that it has stopped, and becomes a
standby; another node takes over at once."""

JOIN = """\
The backup is one of any node of the cluster, by `rpcqm backup`, while the others go on. No number
begins anew: what the log has had since then is read when the node starts. The directory has to be
new or empty; move away what a node has that is too far behind."""

REMOVE = """\
The log is kept until every member has what is in it; one that never comes back is waited for until
the log is almost full. A node that runs is a member again within seconds."""

ADOPT = """\
For a cluster whose log is lost, or no longer has a quorum of its servers and never will. No queue
manager may run on the directory. The data begin a new log: name its servers, which have no log of
that name, and start this node first; the others join by a backup of it. What only the old log or
another node had is lost; because it is not known what that was, numbers begin anew, as after
`rpcqm restore`. Without --accept-loss it only says what this node has. It does the same for data
that `rpcqm restore` has made."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    about = "Show and change which node of a cluster is the queue manager."
    parser = commands.add_parser("cluster", help=about[0].lower() + about[1:-1], description=about)
    orders = add_commands(parser)
    _add_orders(orders)
    _add_to_directory(orders)


def _add_orders(orders: "argparse._SubParsersAction[Parser]") -> None:
    status = add_command(
        orders,
        "status",
        "Tell which node is active, and how far the others are.",
        [("rpcqm cluster status --json", "for a program")],
        run_status,
        STATUS,
    )
    status.add_argument("--json", action="store_true", help="print a JSON object")
    promote = add_command(
        orders,
        "promote",
        "Let this standby take over, whoever is primary.",
        [("rpcqm cluster promote", "on the standby")],
        run_promote,
        PROMOTE,
    )
    switch = add_command(
        orders,
        "switch-over",
        "Let this primary stop, and another node take over.",
        [("rpcqm cluster switch-over --to b", "before this machine is upgraded")],
        run_switch_over,
        SWITCH_OVER,
    )
    switch.add_argument("--to", metavar="NODE", default="", help="which node (default: any)")
    remove = add_command(
        orders,
        "remove",
        "Keep the log for a node no more.",
        [("rpcqm cluster remove c", "its machine is gone for good")],
        run_remove,
        REMOVE,
    )
    remove.add_argument("node", metavar="NODE", help="its name in `rpcqm cluster status`")
    for command in (status, promote, switch, remove):
        add_local_options(command)


def _add_to_directory(orders: "argparse._SubParsersAction[Parser]") -> None:
    join = add_command(
        orders,
        "join",
        "Make a data directory of a new node from a backup of another one.",
        [("rpcqm cluster join /backup/monday --data-dir /var/lib/rpcqm", "a new standby")],
        run_join,
        JOIN,
    )
    join.add_argument("directory", metavar="DIR", type=Path, help="a backup")
    adopt = add_command(
        orders,
        "adopt",
        "Let one node's data begin a new log, after the old log is lost.",
        [("rpcqm cluster adopt --data-dir /var/lib/rpcqm", "say first what it has")],
        run_adopt,
        ADOPT,
    )
    adopt.add_argument(
        "--accept-loss", action="store_true", help="do it, whatever others may have had behind it"
    )
    for command in (join, adopt):
        add_local_options(command)


def _ordered(arguments: argparse.Namespace, purpose: str, work: Any) -> int:
    """Do some work at this node; CommandError for a queue manager that is in no cluster."""

    async def attempt(client: "QueueManagerClient") -> None:
        try:
            await work(client)
        except RpcFault as error:
            if error.status is not FaultStatus.nca_s_unk_if:
                raise
            raise CommandError(
                f"Cannot {purpose}: this queue manager is in no cluster; see [replica] in "
                "docs/failover.md."
            ) from error

    return with_server(arguments, purpose, attempt, administrators_only=True)


def run_status(arguments: argparse.Namespace) -> int:
    """Print how the cluster is."""

    async def work(client: "QueueManagerClient") -> None:
        told = await client.cluster.status()
        if arguments.json:
            print_json(told)
        else:
            from rpcqm.cli.cluster_lines import print_status  # with tables, which only this needs

            print_status(told)

    return _ordered(arguments, "tell how the cluster is", work)


def run_promote(arguments: argparse.Namespace) -> int:
    """Have this standby take over."""

    async def work(client: "QueueManagerClient") -> None:
        if (await client.cluster.status())["role"] == "primary":
            raise CommandError("This node is active already; ask a standby to take over.")
        await client.cluster.promote()
        print("This node takes over as soon as the log has it; `rpcqm cluster status` tells.")

    return _ordered(arguments, "take over", work)


def run_switch_over(arguments: argparse.Namespace) -> int:
    """Have this primary give way."""

    async def work(client: "QueueManagerClient") -> None:
        told = await client.cluster.status()
        if told["role"] != "primary":
            active = f", which is `{visible(told['active'])}`" if told["active"] else ""
            raise CommandError(f"This node is not active: ask the one that is{active}.")
        if arguments.to == told["node"]:
            raise CommandError(f"`{visible(arguments.to)}` is this node: name another one.")
        await client.cluster.switch_over(arguments.to)
        to = f"`{arguments.to}`" if arguments.to else "another node"
        print(f"This node stops, and {to} takes over; `rpcqm cluster status` tells.")

    return _ordered(arguments, "switch over", work)


def run_remove(arguments: argparse.Namespace) -> int:
    """Have the log wait for a node no more."""

    async def work(client: "QueueManagerClient") -> None:
        try:
            await client.cluster.remove(arguments.node)
        except MQError as error:
            if error.status is not NtStatus.STATUS_OBJECT_NAME_NOT_FOUND:
                raise
            raise CommandError(f"There is no node `{visible(arguments.node)}`.") from error
        print(f"The log waits for `{arguments.node}` no more.")

    return _ordered(arguments, "remove the node", work)


def run_join(arguments: argparse.Namespace) -> int:
    """Make the data directory of a new node."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.store.backup import join_backup
    from rpcqm.store.errors import StoreError

    data_dir = configuration(arguments).data_dir
    try:
        with ProgressDisplay("Checked") as progress:
            place = join_backup(
                arguments.directory, data_dir, lambda _, records: progress.advance_to(records)
            )
    except StoreError as error:
        raise CommandError(f"Cannot join: {visible(str(error))}") from error
    print(f"{data_dir} has the cluster's log up to {_record(place)}, and reads on when it starts.")
    return ExitStatus.OK


def run_adopt(arguments: argparse.Namespace) -> int:
    """Let the data begin a new log, if the loss is accepted."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.base.clock import SystemClock
    from rpcqm.binary.connection.new_sequences import begin_new_sequences
    from rpcqm.store.adopting import adopt, place_to_go_on_from
    from rpcqm.store.errors import StoreError

    data_dir = configuration(arguments).data_dir
    try:
        if not arguments.accept_loss:
            had = _had(data_dir, place_to_go_on_from(data_dir))
            raise CommandError(
                f"{had}; what other nodes or the old log have behind that would be lost. "
                "`rpcqm cluster status` there tells what they have; --accept-loss goes on from "
                "here."
            )
        had = _had(data_dir, adopt(data_dir, begin_new_sequences, SystemClock()))
    except (StoreError, OSError) as error:
        raise CommandError(f"Cannot adopt: {visible(str(error))}") from error
    print(f"{had}, and begins a new log; start it first, and let the others join by its backup.")
    return ExitStatus.OK


def _had(data_dir: Path, place: "Place | None") -> str:
    if place is None:
        return f"{data_dir} was restored from a backup"
    return f"{data_dir} has the old log up to {_record(place)}"


def _record(place: "Place") -> str:
    return f"record {place.number:,} of epoch {place.epoch}"
