"""A crawl as a whole: its stages are processes that are started, watched, restarted and stopped.

    crawl          `sumi-ripple crawl`, from the checks before its start to its summary
    fetchers       `sumi-ripple fetch`: fetchers alone, under the same supervisor
    before_start   the checks before stages start: none is running here, no old stop flag is left
    fresh          `--fresh`: the earlier crawl is moved aside
    stages         the stages of a crawl
    supervisor     keeps the stages alive and stops them in order
    exit_rules     its decisions: the meaning of an exit, pauses between restarts, phases of a stop
    reloading      the config is read again while a crawl is under way
    changeover     the order in which stages start where settings have changed
    outage_watch   answers the fetchers' question whether the network works, and waits for it
    stall_watch    finds stages that stand still, or have outgrown their memory
    diagnosis      what may be wrong on this machine
    watchdog       finds and kills a fetcher that a page has brought to a stop
    suspension     Ctrl-Z: paused stages, and the flag that is removed afterwards
    progress       has a stage done anything since it last died? are results left to apply?
    stage_process  one stage's process: its start, its log lines, its exit code
    fork_server    the process that stages are forked from; forked_folder removes what it leaves, if nobody else can

The stages talk to each other through the workspace, never to the supervisor.
"""
