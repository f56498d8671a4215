"""Entry point of a shim. Tiny, because Python compiles a main file anew at every start."""

import sys

# Last, so that nothing beside our packages can stand in front of the standard library.
sys.path.append(__file__.rpartition("/fakes/shim/")[0])

from fakes.shim.start import main

sys.exit(main(sys.argv[1:]))
