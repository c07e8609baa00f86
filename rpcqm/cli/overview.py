"""The overview of a queue manager as text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rpcqm.base.text import visible
from rpcqm.base.units import duration_text
from rpcqm.cli.output import counted, print_fields, size_text, told_time


def print_overview(told: Mapping[str, Any]) -> None:
    """Print an overview as `/api/v1/overview` tells it: what needs attention comes first."""
    for each in told["attention"]:
        print(f"{'!' if each['urgent'] else '-'} {visible(each['text'])}")
    if told["attention"]:
        print()
    print_fields(overview_fields(told))


def overview_fields(told: Mapping[str, Any]) -> dict[str, str]:
    """What an overview tells, in words by what it is."""
    return {
        **_orders(told),
        "Running for": f"{_since(told, 'started')} ({told['name']}, rpcqm {told['version']})",
        "Messages": f"{told['messages']:,} in {counted(told['queues'], 'queue')}, "
        f"{size_text(told['bytes'])}",
        "Of the quota": _of_quota(told),
        "A second": f"{told['in_per_second']:.1f} in, {told['out_per_second']:.1f} out",
        "Oldest": _oldest(told),
        "Dead letters": _dead_letters(told),
        "Connections": f"{told['connections']:,}",
        "Reads that wait": f"{told['waiting_reads']:,}",
        "Being read": f"{told['locked_messages']:,}, {counted(told['leases'], 'lease')}",
        "Transactions": _transactions(told),
        "To others": _outgoing(told),
        "Disk": f"{size_text(told['disk_free'])} free, the store takes "
        f"{size_text(told['store_bytes'])}",
        "Failed logons": f"{told['failed_logons']:,} within the hour",
    }


def _of_quota(told: Mapping[str, Any]) -> str:
    """How much of the quota of all messages is used, and what holds most."""
    used = f"{told['quota_percent']} % of {size_text(told['quota_bytes'])}"
    largest = ", ".join(
        f"{visible(each['queue'])} ({size_text(each['bytes'])})" for each in told["largest"]
    )
    return f"{used}; most is in {largest}" if largest else used


def _orders(told: Mapping[str, Any]) -> dict[str, str]:
    """The orders that hold until they are taken back."""
    names = ("maintenance", "disconnected")
    return {name.capitalize(): standing_text(told[name]) for name in names if told.get(name)}


def standing_text(order: Mapping[str, Any]) -> str:
    """`since 2026-11-28 04:00:00, by alice: a new disk`, as far as that is known."""
    begun = told_time(order["since"])
    since = f"since {begun}" if begun else "since before it was noted when"
    by = f", by {visible(order['by'])}" if order["by"] else ""
    return since + by + (f": {visible(order['reason'])}" if order["reason"] else "")


def _since(told: Mapping[str, Any], name: str) -> str:
    now, then = (datetime.fromisoformat(told[each]) for each in ("now", name))
    return duration_text(max((now - then).total_seconds(), 0))


def _oldest(told: Mapping[str, Any]) -> str:
    if not told["oldest"]:
        return "no message"
    return f"for {_since(told, 'oldest')} in {visible(told['oldest_queue'])}"


def _dead_letters(told: Mapping[str, Any]) -> str:
    if not told["dead_letters"]:
        return "none"
    why = _reasons(told["dead_letters_by_reason"])
    if not told["dead_letters_unread"]:
        return f"{told['dead_letters']:,} ({why}), all looked at"
    new = _reasons(told["dead_letters_unread_by_reason"])
    unread = f"{told['dead_letters_unread']:,} not looked at ({new})"
    return f"{told['dead_letters']:,} ({why}), {unread}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


def _transactions(told: Mapping[str, Any]) -> str:
    if not told["transactions"]:
        return "none"
    return f"{told['transactions']:,}, the oldest for {_since(told, 'oldest_transaction')}"


def _outgoing(told: Mapping[str, Any]) -> str:
    if not told["sessions"]:
        return "none"
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(told["sessions"].items()))
    waiting = f"{counted(told['outgoing_messages'], 'message')} in queues: {states}"
    if not told["outgoing_oldest"]:
        return waiting
    return f"{waiting}; the oldest for {_since(told, 'outgoing_oldest')}"
