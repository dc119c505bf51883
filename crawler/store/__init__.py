"""The store: the pages themselves, as their servers sent them, by the hash of their content.

A fetcher puts the body of a page that it accepted here (`[store] html`), and its result names the hash. `blobs` is the
door: put, get, has, iterate, sync. `file_store` is the implementation: a file a blob under `workspace/store/html`.
Nothing else knows where a blob lies. docs/keeping.md tells it to users.
"""
