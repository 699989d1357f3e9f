"""Datasets for training, made of recordings: LeRobot v3.0 and Donkeycar tub v2.

An extra for computers, `fpvcar[datasets]`; no part of a driving car imports it.
"""
