"""The events of [MS-MQDMPR] 3.1.4 to 3.1.7 and 3.2, one module per subject."""
