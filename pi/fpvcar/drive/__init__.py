"""Path from a wish to motor duties: seat, gate, guard, mixing. Time is an argument."""
