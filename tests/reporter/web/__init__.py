"""Tests of the web face: a real server on loopback, real HTTP."""
