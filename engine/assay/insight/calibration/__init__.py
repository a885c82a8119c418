"""What labels of few rows say of the verdicts on all of them."""
