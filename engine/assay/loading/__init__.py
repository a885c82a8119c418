"""Any source to rollouts: recognise it, choose how to read it, open it."""
