"""One node of a cluster: a standby that follows the log, until it is the queue manager."""
