"""Spark over queues and captures: data sources, and jobs as commands and plain programs."""
