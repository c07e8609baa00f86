"""A bounded run over one target: inputs are made, fed, judged, and kept when they show more."""

import time
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz.target import Oracles, Run, Target, Violation

MOST_KEPT = 3000
TRACED_EVERY = 97
"""Of so many inputs one is measured for Python's memory, and each that shows something new."""


@dataclass
class Report:
    """What a run has found."""

    target: str
    inputs: int = 0
    seeds: int = 0
    outcomes: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    most_traced: int = 0
    crashes: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0.0
        return (
            f"{self.target:18} {self.inputs:>9,} inputs {rate:>8,.0f}/s {self.seeds:>5} seeds "
            f"{self.outcomes:>5} outcomes  slowest {self.slowest * 1000:.1f} ms  "
            f"memory {self.most_traced >> 10} KiB  {len(self.crashes)} violations"
        )


class Campaign:
    """Fuzzes a target with inputs made of a seed; violations are written to `crashes`."""

    def __init__(self, target: Target, seed: int, crashes: Path | None = None) -> None:
        self.target = target
        self.random = Random(f"{target.name} {seed}")
        self.crashes = crashes
        self.oracles = Oracles(target.declared)
        self.report = Report(target.name)
        self._kept = list(dict.fromkeys(target.seeds()))
        self._seen: set[Hashable] = set()
        self._run: Run | None = None
        self._opened = ExitStack()
        self._age = 0

    def run(self, inputs: int) -> Report:
        """Feed so many inputs, the seeds first."""
        began = time.monotonic()
        with self._opened:
            seeds = list(self._kept)
            self.report.seeds = len(seeds)
            for octets in seeds[:inputs]:
                self._feed(octets)
            while self.report.inputs < inputs:
                self._feed(self._next())
        self.report.seconds = time.monotonic() - began
        self.report.outcomes = len(self._seen)
        self.report.slowest = self.oracles.slowest
        self.report.most_traced = self.oracles.most_traced
        return self.report

    def _next(self) -> bytes:
        kept = self._kept
        found = len(kept) - self.report.seeds
        if found and self.random.random() < 0.5:
            chosen = kept[-1 - self.random.randrange(found)]
        else:
            chosen = self.random.choice(kept)
        return self.target.mutate(self.random, chosen, kept)

    def _feed(self, octets: bytes) -> None:
        report = self.report
        report.inputs += 1
        run = self._fresh()
        try:
            outcome = self.oracles.feed(run, octets, report.inputs % TRACED_EVERY == 0)
            if outcome in self._seen:
                return
            self._seen.add(outcome)
            if len(self._kept) < MOST_KEPT:
                self._kept.append(octets)
            self.oracles.feed(run, octets, traced=True)
        except Violation as violation:
            self._note(octets, violation)

    def _fresh(self) -> Run:
        """What is fed, made anew when it has lived long enough."""
        if self._run is None or self._age >= self.target.lifetime:
            self._opened.close()
            self._run = self._opened.enter_context(self.target.open())
            self._age = 0
        self._age += 1
        return self._run

    def _note(self, octets: bytes, violation: Violation) -> None:
        """Write an input that did what none may, once per kind, and go on with a fresh target."""
        self._run = None
        text = str(violation)
        if text in {line.split(": ", 1)[-1] for line in self.report.crashes}:
            return
        name = f"{self.target.name}-{len(self.report.crashes)}.hex"
        self.report.crashes.append(f"{name}: {text}")
        if self.crashes is not None:
            self.crashes.mkdir(parents=True, exist_ok=True)
            (self.crashes / name).write_text(f"{octets.hex()}\n", "ascii")
