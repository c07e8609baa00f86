"""How requests, packets and answers that repeat are recognised and filled in."""
