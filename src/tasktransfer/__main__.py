"""``python -m tasktransfer``."""

import sys

from tasktransfer.cli import main

sys.exit(main())
