"""The rows of the benches by subject, in the order of docs/performance.md."""
