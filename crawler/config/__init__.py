"""The user's config file: loaded with every mistake named at once, described, compared with the last."""
