"""Tests of the package pi/fpvcar/hil."""
