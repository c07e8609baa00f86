"""Which messages are meant, by what they are and say: for searches, and for orders by filter."""
