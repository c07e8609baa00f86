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
    """A trial with the run that it waits for; without a trial, tests that run unchanged."""

    run: Run
    mutation: Mutation | None = None
    trial: Trial | None = None


class Campaign:
    """Runs the trials of mutations, some at a time.

    Each judgement is told as soon as it is known.  What a test does without a mutation is known
    from the first time on; tests of one file are run together without one, which starts their
    servers once.  One that does not pass then is run again alone.
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

    def judge(self, mutations: Sequence[Mutation]) -> list[Judgement]:
        """The judgements of these mutations, in the order in which they were known."""
        self.judgements = []
        together = deque(self._together(mutations))
        waiting = deque(mutations)
        while self._active or together or waiting:
            while together and len(self._active) < self.jobs:
                tests = together.popleft()
                seconds = self.timeout * (2 + len(tests))
                self._active.append(_Active(start(tests, None, seconds)))
            while waiting and len(self._active) < self.jobs:
                self._begin(waiting.popleft())
            self._look()
        return self.judgements

    def _together(self, mutations: Iterable[Mutation]) -> list[list[str]]:
        """The tests that are not known without a mutation, of each file with several."""
        files: dict[str, dict[str, None]] = {}
        for mutation in mutations:
            if mutation.test not in self._baselines:
                files.setdefault(mutation.test.split("::")[0], {})[mutation.test] = None
        return [list(tests) for tests in files.values() if len(tests) > 1]

    def _begin(self, mutation: Mutation) -> None:
        steps = trial(mutation, self._baselines)
        next(steps)
        try:
            run = start([mutation.test], mutation, self.timeout)
        except MutationError as error:
            self._keep(Judgement(mutation, Fate.LOST, str(error)))
            return
        self._active.append(_Active(run, mutation, steps))

    def _look(self) -> None:
        """Pass on what has ended; rest a little if nothing has."""
        ended = [(one, outcomes) for one in self._active if (outcomes := one.run.ended())]
        for one, outcomes in ended:
            self._active.remove(one)
            if one.mutation and one.trial:
                self._go_on(one.mutation, one.trial, outcomes[one.mutation.test])
            else:
                good = {test: outcome for test, outcome in outcomes.items() if outcome.is_good}
                self._baselines.update(good)
        if not ended:
            time.sleep(_PAUSE)

    def _go_on(self, mutation: Mutation, steps: Trial, outcome: Outcome) -> None:
        try:
            steps.send(outcome)
        except StopIteration as end:
            self._keep(end.value)
            return
        run = start([mutation.test], None, self.timeout * 3)
        self._active.append(_Active(run, mutation, steps))

    def _keep(self, judgement: Judgement) -> None:
        self.judgements.append(judgement)
        self.tell(judgement)


def shard(mutations: Sequence[Mutation], index: int, count: int) -> list[Mutation]:
    """Part `index`, from 1, of `count`; tests of one file stay together in the order of files."""
    ordered = sorted(mutations, key=lambda mutation: mutation.test)
    return ordered[index - 1 :: count]


def block(mutations: Sequence[Mutation], index: int, count: int) -> list[Mutation]:
    """Part `index`, from 1, of `count`, of tests that are neighbours: most share a file."""
    ordered = sorted(mutations, key=lambda mutation: mutation.test)
    size = len(ordered)
    return ordered[size * (index - 1) // count : size * index // count]


def shard_of_day(mutations: Sequence[Mutation], count: int, day: date) -> list[Mutation]:
    """The part of `count` that is a day's: any so many days after each other have all parts."""
    return shard(mutations, day.toordinal() % count + 1, count)
