"""Bodies of messages that other programs have written."""
