"""Tests of pi/fpvcar/hil."""
