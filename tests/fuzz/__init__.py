"""Fuzzers: oracles for the parsers, and a seeded fuzzer for running processes."""
