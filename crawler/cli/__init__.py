"""The command line: `app` puts it together, `options` holds what commands share, one file per group of commands."""
