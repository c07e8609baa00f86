"""The elements of [MS-MQDMPR] 3.1.1 that all rooms speak of."""
