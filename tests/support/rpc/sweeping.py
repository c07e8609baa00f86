"""A server's deadlines, by a clock that tests move."""

from typing import Any

from rpcqm.rpc.limits import Limits
from rpcqm.rpc.server import RpcServer
from tests.support.clock import SimulatedClock
from tests.support.rpc.probe import ProbeHandlers
from tests.support.rpc.rpc_server import RunningServer


class Sweeping:
    """A server whose clock stands still until a test moves it."""

    def __init__(self, **limits: int) -> None:
        self.clock = SimulatedClock()
        self.limits = Limits(**limits)
        self.handlers = ProbeHandlers()

    def make(self, **settings: Any) -> RpcServer:
        return RpcServer(clock=self.clock, **settings)

    def sweep(self, running: RunningServer, milliseconds: int) -> int:
        """Let time pass in steps of a second; how many connections are left."""

        def pass_time() -> int:
            for _ in range(milliseconds // 1000):
                self.clock.advance(1000)
                running.server.served.sweep()
            return running.server.connections

        running.do(pass_time)
        return running.do(lambda: running.server.connections)
