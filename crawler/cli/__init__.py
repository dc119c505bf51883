"""The command line.

    app                the commands with their help; errors become one sentence and an exit code
    crawl_commands     crawl, demo, init
    stage_commands     schedule, fetch, ingest: one stage alone
    map_commands       report, replay, digest, stats, explain, export, audit: read an earlier crawl
    history_commands   runs, diff: look back over the runs
    curator_commands   candidates, accept, reject, stub: decide on domains
    control_commands   status, pause, resume, stop
    early_start        the first steps of a command, before all this is loaded
    options            arguments and options that commands share
    help_format        the default command and the layout of the help

Commands parse, call and print; they import heavy modules inside their functions.
"""
