"""What the stages share: logs of records, claims, gates, bookmarks, flags, bells, heartbeats and the state of the run."""
