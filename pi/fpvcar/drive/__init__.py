"""From a wish to duties: seat, gate, guard, mixing; time is an argument."""
