"""Looking on from outside: what is running, how far it is, and whether it was polite."""
