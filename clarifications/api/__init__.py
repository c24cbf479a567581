"""REST of clarifications."""
