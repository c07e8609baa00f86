"""Keys of recorded handshakes, and what they open."""
