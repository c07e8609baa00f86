"""Long work on the database, beside the loop."""

import threading
from collections.abc import Callable
from functools import partial

from rpcqm.base.completion import Completion
from rpcqm.store.environment import StoreEnvironment


class BackgroundWork:
    """Runs long work in threads of the executor, or in the loop if there is no executor.

    The executor must have a thread besides the one for writes, or writes wait.
    """

    def __init__(self, surroundings: StoreEnvironment) -> None:
        self._surroundings = surroundings
        self._changed = threading.Condition()
        self._count = 0

    @property
    def busy(self) -> bool:
        """Whether any work is under way or waiting for a thread."""
        return self._count > 0

    def run(self, work: Callable[[], None]) -> Completion[None]:
        """Do the work; the completion succeeds, or fails with the error that the work raises."""
        outcome: Completion[None] = Completion()
        around = self._surroundings
        if around.executor is None or around.call_from_thread is None:
            _settle(outcome, _attempt(work))
        else:
            with self._changed:
                self._count += 1
            around.executor(partial(self._run_in_thread, work, outcome, around.call_from_thread))
        return outcome

    def _run_in_thread(
        self,
        work: Callable[[], None],
        outcome: Completion[None],
        call_from_thread: Callable[[Callable[[], None]], object],
    ) -> None:
        error = _attempt(work)
        with self._changed:
            self._count -= 1
            self._changed.notify_all()
        call_from_thread(partial(_settle, outcome, error))

    def wait(self) -> None:
        """Return when no work is under way any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)


def _attempt(work: Callable[[], None]) -> Exception | None:
    try:
        work()
    except Exception as error:  # the loop, not this thread, resolves the completion
        return error
    return None


def _settle(outcome: Completion[None], error: Exception | None) -> None:
    if error is None:
        outcome.succeed(None)
    else:
        outcome.fail(error)
