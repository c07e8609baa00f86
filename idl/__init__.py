"""The interface descriptions: one IDL file each, installed as package data."""
