"""Devices accessed through the kernel's own interfaces."""
