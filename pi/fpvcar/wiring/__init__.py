"""Wiring plan of a car's profile as parts, wires, tables and a drawing."""
