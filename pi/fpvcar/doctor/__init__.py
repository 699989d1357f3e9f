"""What is wrong with a car, why it matters, and the line that mends it.

collect (asks the machine) -> facts -> checks (pure) -> report
"""
