"""Reads recordings, on the car and anywhere else."""
