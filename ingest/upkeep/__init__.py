"""Removing what the config no longer wants kept."""
