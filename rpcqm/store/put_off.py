"""Work that is put off to the end of a turn, and carried out before anybody can notice (G595)."""

from collections.abc import Callable


class PutOff:
    """Work for the end of the turn; `waits` says whether there is any.

    The store has it carried out before a change, before it gives a number, and before a look at
    anything that depends on others' changes. No door has to do that itself.
    """

    __slots__ = ("_carry_out", "waits")

    def __init__(self) -> None:
        self._carry_out: list[Callable[[], None]] = []
        self.waits = False

    def add(self, carry_out: Callable[[], None]) -> None:
        """Add work, to be carried out once however often it is added."""
        if carry_out not in self._carry_out:
            self._carry_out.append(carry_out)
        self.waits = True

    def carry_out(self) -> None:
        """Carry out the waiting work, and work that it puts off; none waits when this returns."""
        while self._carry_out:
            waiting, self._carry_out = self._carry_out, []
            self.waits = False
            for each in waiting:
                each()
