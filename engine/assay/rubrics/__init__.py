"""Rubrics of reward functions."""
