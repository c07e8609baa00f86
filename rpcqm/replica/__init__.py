"""Each turn's write goes to a replicated log of an existing engine first; others take over."""
