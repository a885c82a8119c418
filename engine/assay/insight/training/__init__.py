"""Groups of rollouts as trainers see them: their advantages, and which groups dynamic sampling keeps."""
