"""Requests on the wire.

`client.HttpClient.send` makes one request. On its way it passes these rooms, in this order:

    idle          a kept connection to the origin, if there is one
    resolver      the host's addresses, from its cache or from `dns`, checked by `addresses`
    connection    dialling, the TLS handshake (`tls`), bytes out and in, under one `deadline`
    answer        the head and the wanted part of the body, by `http1` and `codings`
    failures      any exception as a slug and words

Every wait goes through a `SocketWaiter`: `hub.Hub` runs many requests in one thread, `BlockingWaiter` one in each.
"""
