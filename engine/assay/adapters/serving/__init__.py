"""What a server of rewards takes from its clients: bodies and connections, within limits."""
