"""From a frame to the TCP segment in it, through all that carries it: no input, output or state."""
