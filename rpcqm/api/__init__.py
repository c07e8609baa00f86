"""The interface for programs, /api/v1, over `operations`; its OpenAPI describes it."""
