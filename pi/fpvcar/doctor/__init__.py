"""Diagnosis of a car: faults, their consequences, and the commands that mend them.

collect (queries the machine) -> facts -> checks (pure) -> report
"""
