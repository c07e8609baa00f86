"""Captures column by column: numpy does what every record of the regular majority needs."""
