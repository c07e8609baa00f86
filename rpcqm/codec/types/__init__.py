"""The types, requests and responses of the interfaces: one module for each file in idl/.

The modules and their stubs are written by `scripts/generate`.
"""
