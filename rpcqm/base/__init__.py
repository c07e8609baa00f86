"""What every room may use: errors, time, completions, logs, metrics."""
