"""Five queue managers under random interleavings, against the judge of what becomes of messages.

Hypothesis chooses who dies after how many steps, whose sessions end, what is full and for how long;
`tests.support.network.network_story` has what can happen, `tests.support.network.network_judge`
what may come of it. `RPCQM_MODEL_EXAMPLES` and `RPCQM_MODEL_STEPS` make it look deeper.
"""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.network.network_story import SCOPES, Story
from tests.support.network.network_world import MACHINES
from tests.support.queue_manager import MEMORY
from tests.support.soak.network_soak import judged

FULL = [(machine, scope) for machine, scopes in SCOPES.items() for scope in scopes]
MACHINE = st.sampled_from(sorted(MACHINES))
MILLISECONDS = st.sampled_from([1, 100, 5_000, 40_000])


class NetworkModel(RuleBasedStateMachine):
    """One story, which is judged when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="rpcqm-network-", dir=MEMORY))
        self.story: Story | None = None

    @initialize(seed=st.integers(0, 0xFFFF))
    def begin(self, seed: int) -> None:
        self.story = Story(self.directory, seed)

    @property
    def going(self) -> Story:
        assert self.story is not None
        return self.story

    @rule(count=st.sampled_from([1, 4]))
    def send(self, count: int) -> None:
        for _ in range(count):
            self.going.send()

    @rule()
    def read(self) -> None:
        self.going.read()

    @rule(milliseconds=MILLISECONDS)
    def advance(self, milliseconds: int) -> None:
        self.going.world.advance(milliseconds)

    @rule(machine=MACHINE, steps=st.integers(0, 12))
    def die_between_two_steps(self, machine: str, steps: int) -> None:
        self.going.strike(machine, steps, 0, back=6_000)
        self.going.send()

    @rule(machine=MACHINE, delay=MILLISECONDS)
    def die_at_a_moment(self, machine: str, delay: int) -> None:
        self.going.strike(machine, None, delay, back=delay + 3_000)

    @rule(machine=MACHINE)
    def end_all_sessions(self, machine: str) -> None:
        self.going.world.break_connections(lambda one, other: machine in (one.name, other.name))

    @rule(full=st.sampled_from(FULL), milliseconds=MILLISECONDS)
    def be_full(self, full: tuple[str, str], milliseconds: int) -> None:
        self.going.squeeze(*full, milliseconds)
        self.going.read()

    @rule(machine=MACHINE, family=st.sampled_from([0, 1]), milliseconds=MILLISECONDS)
    def lose_an_address(self, machine: str, family: int, milliseconds: int) -> None:
        address = self.going.world.nodes[machine].addresses[family]
        self.going.lose_address(address, milliseconds)

    @rule()
    def leave_the_other_site_to_the_routers(self) -> None:
        self.going.wall()

    def teardown(self) -> None:
        try:
            if self.story is not None:
                self.story.end()
                problems = judged(self.story).problems
                self.story.world.stop()
                assert problems == []
        finally:
            shutil.rmtree(self.directory)


NetworkModel.TestCase.settings = settings(
    max_examples=max(1, int(os.environ.get("RPCQM_MODEL_EXAMPLES", "60")) // 10),
    stateful_step_count=int(os.environ.get("RPCQM_MODEL_STEPS", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestNetworkModel = NetworkModel.TestCase
