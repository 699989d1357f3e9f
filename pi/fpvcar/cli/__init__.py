"""Command line of `fpvcar`: its parser and its verbs."""
