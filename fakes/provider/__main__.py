"""`python -I -m fakes.provider --events DIR --port-file FILE --token TOKEN`: run the model provider."""

import argparse
import asyncio

from fakes.provider.server import serve


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="fakes.provider", description="The fake model provider of a drill.")
    parser.add_argument("--events", required=True, help="folder of the bundle's event files")
    parser.add_argument("--port-file", required=True, help="where to write the port, once it listens")
    parser.add_argument("--token", required=True, help="the token that clients of this run present")
    given = parser.parse_args()
    asyncio.run(serve(given.events, given.port_file, given.token))


if __name__ == "__main__":
    main()
