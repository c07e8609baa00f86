"""The interface for programs, /api/v1: over `operations`, and described by its own OpenAPI."""
