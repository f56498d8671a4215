"""Entry point of the simulated worker. Tiny, because Python compiles a main file anew at every start."""

import os
import sys

# Last, so that nothing beside our packages can stand in front of the standard library.
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from fakes.worker.start import main

sys.exit(main(sys.argv[1:]))
