"""The layers that are read: each a step from its header to what is behind it, found by numbers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rpcqm.capture.frames.ends import End
from rpcqm.capture.frames.octets import Octets

Step = Callable[[Octets, int], "Place"]
"""Reads the header at a place of a frame."""
Place = tuple[Step, int] | End
"""The next step and where its header begins, or what the frame holds in the end."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer by its name, and what of it is read; without that it is not worth a row."""

    name: str
    about: str


LAYERS: dict[Step, Layer] = {}
_STEPS: dict[tuple[str, int], Step] = {}


def step(name: str, about: str, **numbers: Iterable[int]) -> Callable[[Step], Step]:
    """Make a function the step for those numbers: `link`, `ethertype`, `gre`, `protocol`, `port`
    and `ppp` are what they are numbers of."""

    def registered(function: Step) -> Step:
        LAYERS[function] = Layer(name, about)
        for space, each in numbers.items():
            _STEPS.update({(space, number): function for number in each})
        return function

    return registered


def step_to(space: str, number: int) -> Step | None:
    """The step for a number; None if nothing that has this number is read."""
    return _STEPS.get((space, number))


def numbers_of(space: str) -> frozenset[int]:
    """The numbers of one kind for which there are steps."""
    return frozenset(number for each, number in _STEPS if each == space)
