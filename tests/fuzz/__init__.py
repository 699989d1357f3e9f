"""Fuzzers: oracles for what parses bytes, and a seeded one for what runs."""
