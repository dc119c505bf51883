"""A fetcher process: it claims domains, makes their visits one after the other, and writes down the results."""
