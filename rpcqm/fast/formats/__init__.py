"""Recognises and fills in requests, packets and answers that repeat."""
