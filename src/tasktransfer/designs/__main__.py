"""Print the JSON schema of a design's config files: ``python -m tasktransfer.designs [DESIGN]``."""

import json
import sys

from tasktransfer.config import schema
from tasktransfer.designs import DESIGNS

name = sys.argv[1] if len(sys.argv) > 1 else "transfer"
print(json.dumps(schema(DESIGNS[name].config), indent=2))
