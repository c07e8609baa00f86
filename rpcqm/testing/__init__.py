"""Private queue managers for anybody's tests."""

from rpcqm.testing.private import PrivateQueueManager, private_queue_manager

__all__ = ["PrivateQueueManager", "private_queue_manager"]
