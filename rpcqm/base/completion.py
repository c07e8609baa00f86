"""Outcomes that arrive later, without an event loop.

The queue manager answers through completions: they are resolved synchronously, in the order in
which the store's commits become durable, so a test can drive everything with a simulated clock.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")

_PENDING: Any = object()
_TWICE = "the completion is already resolved"


class Completion(Generic[T]):
    """An outcome that arrives once, as a value or as an error.

    Callbacks run synchronously, in the order in which they were added; a callback added after
    the outcome runs at once.
    """

    __slots__ = ("_callbacks", "_error", "_given", "_value")

    def __init__(self) -> None:
        self._value: T = _PENDING
        self._given: Any = _PENDING
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Completion[T]], None]] = []

    @property
    def done(self) -> bool:
        return self._value is not _PENDING or self._error is not None

    def succeed(self, value: T) -> None:
        """Resolve with `value`; a second outcome is a programming error."""
        if self._value is not _PENDING or self._error is not None:
            raise RuntimeError(_TWICE)
        self._value = value if self._given is _PENDING else self._given
        self._run_callbacks()

    def giving(self, value: U) -> "Completion[U]":
        """Make this completion succeed with `value`, whatever value it gets; returns the same
        object.

        Only the sole holder of a completion may call this. Raises RuntimeError if it is resolved
        already.
        """
        if self._value is not _PENDING or self._error is not None:
            raise RuntimeError(_TWICE)
        self._given = value
        return cast("Completion[U]", self)

    def fail(self, error: BaseException) -> None:
        """Resolve with an error, raised by `result` and by `await`."""
        if self._value is not _PENDING or self._error is not None:
            raise RuntimeError(_TWICE)
        self._error = error
        self._run_callbacks()

    def follow(self, other: "Completion[T]") -> None:
        """Resolve as `other` resolves, with its value or its error."""
        if other.error is not None:
            self.fail(other.error)
        else:
            self.succeed(other.result())

    def follow_call(self, start: "Callable[[], Completion[T]]") -> None:
        """Resolve as the completion that `start` returns; an error that `start` raises becomes this
        one's."""
        try:
            going = start()
        except Exception as error:  # whatever the error is, the waiting caller can report it
            self.fail(error)
        else:
            going.add_done_callback(self.follow)

    def result(self) -> T:
        """The value; raises the error of a failed completion, RuntimeError when still pending."""
        if self._error is not None:
            raise self._error
        if self._value is _PENDING:
            raise RuntimeError("the completion is still pending")
        return self._value

    @property
    def error(self) -> BaseException | None:
        return self._error

    def add_done_callback(self, callback: Callable[["Completion[T]"], None]) -> None:
        if self._value is not _PENDING or self._error is not None:
            callback(self)
        else:
            self._callbacks.append(callback)

    def __await__(self) -> Generator["Completion[Any]", None, T]:
        if not self.done:
            yield self
        return self.result()

    def _run_callbacks(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def completed(value: T) -> Completion[T]:
    """A completion that has its value already."""
    completion: Completion[T] = Completion()
    completion._value = value
    return completion


def failed(error: BaseException) -> Completion[T]:
    """A completion that has failed already."""
    completion: Completion[T] = Completion()
    completion.fail(error)
    return completion


def start(coroutine: Coroutine[Completion[Any], None, T]) -> Completion[T]:
    """Run a coroutine that awaits completions only; its first step runs now."""
    outcome: Completion[T] = Completion()
    _step(coroutine, outcome)
    return outcome


def _step(coroutine: Coroutine[Completion[Any], None, T], outcome: Completion[T]) -> None:
    try:
        awaited = coroutine.send(None)
    except StopIteration as stop:
        outcome.succeed(stop.value)
    except Exception as error:  # the error reaches the caller that awaits the outcome
        outcome.fail(error)
    else:
        awaited.add_done_callback(lambda _: _step(coroutine, outcome))
