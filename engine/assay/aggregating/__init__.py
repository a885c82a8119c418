"""Scores to rewards: each rule once, for rows and for columns."""
