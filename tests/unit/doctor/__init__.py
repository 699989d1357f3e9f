"""Tests of the package pi/fpvcar/doctor."""
