"""PURE. Telling an outage of this machine from a fact about the web, and a stage that stands still from one that waits.

    suspicion      is a failed request believed, made again, or held until more is known?
    network_state  what all processes know of the network: the shared document
    stalls         does a stage stand still though work is due?
    findings       what is wrong here, each in one sentence with what to do

A fetcher holds a failure back that may be its own (`crawler.fetch.outlook`) and asks; the supervisor diagnoses and
answers for all fetchers (`crawler.supervise.outage_watch`).
"""
