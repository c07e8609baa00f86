"""The budget for reading one body: decoded values, and octets of JSON for them (G395)."""

from json.encoder import encode_basestring

from rpcqm.base.errors import DecodeError

FREE_VALUES = 65_536
"""Values that a body of .NET, in JSON or XML may hold however small it is.

Bound `body.free_values` [values]: the body is told by its octets, with the reason.
"""
OCTETS_PER_VALUE = 4
"""Octets of such a body for each value that it may hold besides.

Bound `body.octets_per_value` [octets]: the body is told by its octets, with the reason.
"""
FREE_OCTETS = 48 * 1024
"""Octets of JSON that are told of any body however small it is.

Bound `body.free_octets` [octets]: the body is told by its octets, with the reason.
"""
TOLD_PER_OCTET = 8
"""Octets of JSON that are told of any body besides, for each of its own.

What else is told of a message has the rest of 64 KiB.

Bound `body.told_per_octet` [octets]: the body is told by its octets, with the reason.
"""
SMALLEST_MEASURED = 4_096
"""Octets of a body below which its JSON cannot be too long, unless the body refers to parts of
itself."""


class BudgetError(DecodeError):
    """A body that would take more than its budget allows."""


class DecodeBudget:
    """The budget of a body of `size` octets; decoders spend it.

    `values` and `octets` are allowed in all, `spent` counts the decoded values so far.
    """

    __slots__ = ("octets", "spent", "values")

    def __init__(self, size: int) -> None:
        self.values = FREE_VALUES + size // OCTETS_PER_VALUE
        self.octets = FREE_OCTETS + TOLD_PER_OCTET * size
        self.spent = 0

    @property
    def left(self) -> int:
        """The number of values that may still be decoded."""
        return self.values - self.spent

    def spend(self, values: int) -> None:
        """Spend values before they are decoded; raises BudgetError if too few are left."""
        self.spent += values
        if self.spent > self.values:
            raise BudgetError("it has more values than are made of a body of its size")

    def check(self, values: int, octets: int) -> None:
        """Raise BudgetError if the whole body in JSON exceeds the budget."""
        if values > self.values:
            raise BudgetError("written out, it has more values than are made of a body of its size")
        if octets > self.octets:
            raise BudgetError(TOO_LONG)


TOO_LONG = "written out, it is too long for a body of its size"


def told_size(text: str) -> int:
    """Octets of a text in JSON; characters beyond ASCII count once."""
    return len(encode_basestring(text))
