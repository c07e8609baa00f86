"""What is put off to the end of a turn, and comes before all that could tell that it was (G595)."""

from collections.abc import Callable


class PutOff:
    """Whether anything `waits` for the end of the turn.

    Whoever changes the store, takes a number, or looks at what depends on the changes of others
    asks first, and has it carried out. No door has to know of it.
    """

    __slots__ = ("_carry_out", "waits")

    def __init__(self) -> None:
        self._carry_out: list[Callable[[], None]] = []
        self.waits = False

    def add(self, carry_out: Callable[[], None]) -> None:
        """Have something carried out once, however often it is added."""
        if carry_out not in self._carry_out:
            self._carry_out.append(carry_out)
        self.waits = True

    def carry_out(self) -> None:
        """Carry out what waits, and what that puts off; nothing waits when this returns."""
        while self._carry_out:
            waiting, self._carry_out = self._carry_out, []
            self.waits = False
            for each in waiting:
                each()
