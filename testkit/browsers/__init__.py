"""Browsers that Playwright does not control; for Firefox: benchmarks/rdma/bidi.py."""
