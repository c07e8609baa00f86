"""An open, MSMQ-compatible queue manager."""
