"""Whether groups of rollouts hold together: their prompts and golds, and how many of their texts are the same."""
