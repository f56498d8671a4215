"""`serve --config FILE` runs the reference coordinator; `ctl --control DIR VERB` is an operator's hand on
any coordinator.

python -I -m fakes.coordinators.reference serve --config world/config.json
python -I -m fakes.coordinators.reference ctl --control world/control abort --wait 60
"""

import argparse
import asyncio
import json
import os
import sys

from fakes.coordinators.mailbox import Mailbox, NoReply
from fakes.coordinators.service import main, reference

VERBS = ("start", "pause", "resume", "redirect", "abort", "status", "sweep", "usage", "answer", "close")


def ctl(argv: list[str]) -> int:
    """Send one request and print the reply as one line of JSON.

    0 when it says ok, 1 when not, 4 without a reply.
    """
    parser = argparse.ArgumentParser(prog="ctl")
    parser.add_argument("--control", required=True, metavar="DIR")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--args", default="{}", type=json.loads, metavar="JSON")
    parser.add_argument("--wait", default=60.0, type=float, metavar="S")
    options = parser.parse_args(argv)
    if not os.path.isdir(options.control):
        parser.error(f"--control {options.control}: there is no such folder")
    mailbox = Mailbox(options.control)
    try:
        reply = asyncio.run(mailbox.reply(mailbox.send(options.verb, options.args), options.wait))
    except NoReply as why:
        print(f"ctl: {why}", file=sys.stderr)
        return 4
    print(json.dumps(reply))
    return 0 if reply.get("ok") else 1


if __name__ == "__main__":
    sys.exit(ctl(sys.argv[2:]) if sys.argv[1:2] == ["ctl"] else main(reference, sys.argv[1:]))
