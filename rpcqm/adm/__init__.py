"""The elements of [MS-MQDMPR] 3.1.1, which all rooms share."""
