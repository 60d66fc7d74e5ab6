"""Piper's own HTTP server, with its own arguments, on one core, until SIGTERM."""

import os
import runpy


def main() -> None:
    # The engine starts a thread per core that it may use. One leaves the second core of a small machine to the load
    # generator.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    runpy.run_module("piper.http_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
