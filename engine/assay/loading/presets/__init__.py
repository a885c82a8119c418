"""Records of other tools to rollouts."""
