"""Debians of other architectures and releases, for tests of the product."""
