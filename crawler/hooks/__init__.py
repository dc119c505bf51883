"""Messages about a crawl to the outside: `[[hook]]` with a URL (a signed POST) or a command (an e-mail on its input).

A message is written into the workspace first (`outbox`), then sent (`delivery`); what could not be sent waits for the
next start. Nothing here is on the way of a page.
"""
