"""Debians of other architectures and releases, in which the product is tested."""
