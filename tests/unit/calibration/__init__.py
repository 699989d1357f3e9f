"""Tests of the package pi/fpvcar/calibration."""
