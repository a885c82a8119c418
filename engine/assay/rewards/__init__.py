"""Reward functions: their arguments, their calls, and the checks that make them."""
