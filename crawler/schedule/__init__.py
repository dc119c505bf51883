"""The scheduler: what is released next, in windows of jobs per domain, lowest depth first."""
