"""The same queue manager with a log: a replay of all that the log has is its database.

A crash loses what was appended and not written here yet; the start reads it from the log again.
"""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

from tests.model.test_queue_manager_model import QueueManagerModel
from tests.support.queue_manager import MEMORY, RunningQueueManager
from tests.support.store.kept_log import begin_cluster, replay, rows_of


class ReplicatedQueueManager(RunningQueueManager):
    """Begins each time with what the log has."""

    def _start(self) -> None:
        assert self.log is not None
        replay(self.directory, self.log.records[replay(self.directory, []).number :])
        self.log.take_over()
        super()._start()

    def stop(self) -> None:
        """End the turn first: a store does not wait for the log when it closes."""
        self.engine.queue_manager_stopped()
        self.settle()
        self.store.close()
        self._turn.clear()


class ReplicatedModel(QueueManagerModel):
    """What the primary is asked is what the model of a queue manager alone is asked."""

    def running(self) -> RunningQueueManager:
        return ReplicatedQueueManager(self.directory, log=begin_cluster(self.directory))

    def teardown(self) -> None:
        self.qm.settle()
        self.qm.store.close()
        standby = Path(tempfile.mkdtemp(prefix="rpcqm-model-", dir=MEMORY))
        try:
            assert self.qm.log is not None
            begin_cluster(standby)
            replay(standby, self.qm.log.records)
            assert rows_of(standby) == rows_of(self.directory)
        finally:
            shutil.rmtree(standby)
            shutil.rmtree(self.directory)


ReplicatedModel.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestReplicatedModel = ReplicatedModel.TestCase
