"""The map as a file for other tools."""
