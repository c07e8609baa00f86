"""Recorded traffic: captures → flows → PDUs or packets → calls; replay with comparison."""
