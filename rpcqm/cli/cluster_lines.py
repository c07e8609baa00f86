"""How the status of a cluster reads: the active node, the log, and each member."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rpcqm.base.text import visible
from rpcqm.base.units import duration_text
from rpcqm.cli.output import Table, size_text

SOON = 10_000
"""Milliseconds: what a node lacks for less is on its way to it."""


def print_status(told: Mapping[str, Any]) -> None:
    """Print what `rpcqm cluster status --json` has."""
    for line in status_lines(told):
        print(line)
    table = Table(["NODE", "ROLE", ">RECORD", ">BEHIND", "TOLD"])
    for member in told["members"]:
        table.add(*_cells(told, member))
    table.print()


def status_lines(told: Mapping[str, Any]) -> list[str]:
    """What there is to say before the members."""
    lines = [
        f"This node: {visible(told['node'])}, {told['role']}{_reason(told)}",
        f"Active: {_active(told)}",
        f"Log: {visible(told['log'])}, records {told['log_first']:,} to {told['log_end']:,}, "
        f"{size_text(told['log_bytes'])}",
    ]
    if told["doubt"]:
        waited = duration_text(told["doubted"] / 1000)
        lines.append(f"In doubt for {waited}: {visible(told['doubt'])}")
    return lines


def active_line(told: Mapping[str, Any]) -> str:
    """The cluster in one line: who is active, and how far the others are."""
    others = [each for each in told["members"] if each["node"] != told["active"]]
    behind = ", ".join(
        f"{visible(each['node'])} {'lost' if each['lost'] else _behind(each)}" for each in others
    )
    return f"Cluster: {_active(told)}; {behind or 'no standby'}"


def _active(told: Mapping[str, Any]) -> str:
    if not told["active"]:
        return "no node yet"
    taken = told["last_takeover"]
    since = f" for {duration_text(max(0.0, time.time() - taken / 1000))}" if taken else ""
    return f"{visible(told['active'])}{since}, epoch {told['epoch']}"


def _reason(told: Mapping[str, Any]) -> str:
    return f" ({visible(told['why'])})" if told["why"] and told["role"] != "standby" else ""


def _behind(member: Mapping[str, Any]) -> str:
    """A node tells every five seconds, and a primary gives a sign of life each second."""
    if member["lag_milliseconds"] <= SOON:
        return "up to date"
    return f"{member['lag']:,} behind for {duration_text(member['lag_milliseconds'] / 1000)}"


def _role(told: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """What it is by its last words: one primary at a time."""
    was = member["role"] == "primary" and member["node"] != told["active"]
    return "was primary" if was else str(member["role"])


def _cells(told: Mapping[str, Any], member: Mapping[str, Any]) -> Sequence[str]:
    here = member["node"] == told["node"]
    heard = f"{duration_text(member['age'] / 1000)} ago"
    if member["lost"]:
        heard += ", too far behind: join anew"
    return [
        member["node"],
        _role(told, member),
        f"{told['place'] if here else member['place']:,}",
        f"{member['lag']:,}",
        "now" if here else heard,
    ]
