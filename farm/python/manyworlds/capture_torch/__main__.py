"""`python3 -m manyworlds.capture_torch`."""

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
