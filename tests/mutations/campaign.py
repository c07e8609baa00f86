"""Judge mutations: caught by their tests, survived, or no longer to be applied."""

import enum
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from tests.mutations.data import Mutation, MutationError
from tests.mutations.running import TOOK_TOO_LONG, Outcome, Run, start

TIMEOUT = 20.0
_PAUSE = 0.01


class Fate(enum.Enum):
    """What came of a mutation; all but the first two are mistakes."""

    CAUGHT = "caught"
    STOPPED = "caught only because its test took too long"
    SURVIVED = "survived"
    LOST = "no longer applies"
    BROKEN = "keeps the product from being imported"
    UNPROVED = "its test fails or runs nothing without it"

    @property
    def is_good(self) -> bool:
        return self in (Fate.CAUGHT, Fate.STOPPED)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fate of one mutation, and a sentence for people."""

    mutation: Mutation
    fate: Fate
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.fate.value}: {self.mutation} by {self.mutation.test} {self.reason}".rstrip()


# Asks for a run of its test, with the mutation or without, and is sent the outcome.
Trial = Generator[Mutation | None, Outcome, Judgement]


def trial(mutation: Mutation, baselines: dict[str, Outcome]) -> Trial:
    """The runs that one mutation needs; what the test does without it is asked for once."""
    outcome = yield mutation
    if outcome.broken:
        return Judgement(mutation, Fate.BROKEN, outcome.broken[0])
    if not outcome.failures:
        fate = Fate.SURVIVED if outcome.passed else Fate.UNPROVED
        return Judgement(mutation, fate)
    if mutation.test not in baselines:
        baselines[mutation.test] = yield None
    baseline = baselines[mutation.test]
    if not baseline.is_good:
        return Judgement(mutation, Fate.UNPROVED, "".join(baseline.failures + baseline.broken))
    if outcome.failures == [TOOK_TOO_LONG]:
        return Judgement(mutation, Fate.STOPPED)
    return Judgement(mutation, Fate.CAUGHT, outcome.failures[0])


@dataclass(slots=True)
class _Active:
    mutation: Mutation
    trial: Trial
    run: Run


class Campaign:
    """Runs the trials of mutations, some at a time.

    Each judgement is told as soon as it is known.  What a test does without a mutation is known
    from the first time on.
    """

    def __init__(
        self,
        jobs: int,
        tell: Callable[[Judgement], None],
        timeout: float = TIMEOUT,
    ) -> None:
        self.jobs = jobs
        self.tell = tell
        self.timeout = timeout
        self.judgements: list[Judgement] = []
        self._baselines: dict[str, Outcome] = {}
        self._active: list[_Active] = []

    def judge(self, mutations: Iterable[Mutation]) -> list[Judgement]:
        """The judgements of these mutations, in the order in which they were known."""
        self.judgements = []
        waiting = deque(mutations)
        while self._active or waiting:
            while waiting and len(self._active) < self.jobs:
                self._begin(waiting.popleft())
            self._look()
        return self.judgements

    def _begin(self, mutation: Mutation) -> None:
        steps = trial(mutation, self._baselines)
        next(steps)
        try:
            run = start(mutation.test, mutation, self.timeout)
        except MutationError as error:
            self._keep(Judgement(mutation, Fate.LOST, str(error)))
            return
        self._active.append(_Active(mutation, steps, run))

    def _look(self) -> None:
        """Pass on what has ended; rest a little if nothing has."""
        ended = [(one, outcome) for one in self._active if (outcome := one.run.ended())]
        for one, outcome in ended:
            self._active.remove(one)
            self._go_on(one, outcome)
        if not ended:
            time.sleep(_PAUSE)

    def _go_on(self, one: _Active, outcome: Outcome) -> None:
        try:
            one.trial.send(outcome)
        except StopIteration as end:
            self._keep(end.value)
            return
        one.run = start(one.mutation.test, None, self.timeout * 3)
        self._active.append(one)

    def _keep(self, judgement: Judgement) -> None:
        self.judgements.append(judgement)
        self.tell(judgement)


def shard(mutations: Sequence[Mutation], index: int, count: int) -> list[Mutation]:
    """Part `index`, from 1, of `count`; tests of one file stay together in the order of files."""
    ordered = sorted(mutations, key=lambda mutation: mutation.test)
    return ordered[index - 1 :: count]


def shard_of_day(mutations: Sequence[Mutation], count: int, day: date) -> list[Mutation]:
    """The part of `count` that is a day's: any so many days after each other have all parts."""
    return shard(mutations, day.toordinal() % count + 1, count)
