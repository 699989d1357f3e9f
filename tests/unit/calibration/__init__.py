"""Tests of pi/fpvcar/calibration."""
