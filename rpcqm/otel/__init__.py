"""Traces by OpenTelemetry: spans of what becomes of messages, given to a collector."""
