"""Bodies of messages as other programs write them."""
