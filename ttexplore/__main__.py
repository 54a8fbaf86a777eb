"""``python -m ttexplore``: the command line."""

import sys

from ttexplore.cli import main

sys.exit(main())
