"""Removal of results that the config no longer wants kept."""
