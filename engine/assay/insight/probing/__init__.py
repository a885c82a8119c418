"""Probes: texts that no model should be rewarded for, and what they are made of."""
