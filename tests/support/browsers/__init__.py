"""Browsers that Playwright does not control: Debian's Firefox and WebKitGTK."""
