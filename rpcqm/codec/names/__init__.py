"""Names of queues: format names, path names, and their structures."""
