"""The workspace as files on one machine: append-only spools, lock files, small whole files, named pipes."""
