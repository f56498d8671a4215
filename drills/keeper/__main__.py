"""Start the keeper as a file in an isolated interpreter: `python -I -S -E drills/keeper/__main__.py --run …`.

Keeps `drills/__init__.py` out: the folder `drills` itself goes on the path, so that this package is called
`keeper` here. Both folders go to the end of the path, because otherwise one of our modules could stand in
front of one of the standard library's.
"""

import importlib
import os
import sys

if __name__ == "__main__":
    _drills = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path += [_drills, os.path.dirname(_drills)]
    sys.exit(importlib.import_module("keeper.program").main(sys.argv[1:]))
