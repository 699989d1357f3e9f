"""Devices through the kernel's own interfaces."""
