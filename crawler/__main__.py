"""`python -m crawler`, and the `sumi-ripple` command."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line; ends the process."""
    from crawler.cli.early_start import begin_early, ctrl_c_ends_at_once, open_standard_streams

    open_standard_streams()
    with ctrl_c_ends_at_once():
        begin_early(sys.argv[1:])
        from crawler.cli.app import built, run

        built()
    code = run(sys.argv[1:])
    gc.freeze()  # the process ends: to look for what could be collected takes up to a tenth of a second
    sys.exit(code)


if __name__ == "__main__":
    main()
