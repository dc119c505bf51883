"""The parts that stages share. `door` is the interface, `files` its implementation on one machine, `opening` picks it.

`log` and `reading` turn appended lines into typed records; `control`, `runs` and `clock` are what every stage needs
beside: flags and signals, the state of the run, the time.
"""
