"""``python -m layoutsim``."""

import sys

from layoutsim.cli import main

sys.exit(main())
