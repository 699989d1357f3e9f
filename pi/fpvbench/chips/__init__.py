"""Register models of the chips on the bench."""
