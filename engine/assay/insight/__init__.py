"""What people want to know of rewards."""
