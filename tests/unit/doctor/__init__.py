"""Tests of pi/fpvcar/doctor."""
