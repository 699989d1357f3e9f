"""Datasets for training, made of recordings: LeRobot v3.0 and Donkeycar tub v2.

An export runs in a process of its own, with the extra `fpvcar[datasets]`. A driving car imports
only api.py, which starts such a process for the recordings page.
"""
