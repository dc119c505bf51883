"""uvicorn's HTTP/1.1, with problem details for what is no HTTP at all."""

from __future__ import annotations

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from reporter.web.problems import Problem


class WireProtocol(H11Protocol):
    """uvicorn answers such bytes itself, before any app; its own answer is plain text."""

    def send_400_response(self, msg: str) -> None:
        problem = Problem(400, "not-http", "what came is not an HTTP request")
        body = msgspec.json.encode(problem.body())
        headers = {"Content-Type": "application/problem+json", "Content-Length": str(len(body)), "Connection": "close"}
        response = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
