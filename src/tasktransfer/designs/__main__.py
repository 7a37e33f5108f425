"""Print the JSON schema of a design's config files: ``python -m tasktransfer.designs [DESIGN]``."""

import json
import sys

from tasktransfer.config import generate_schema
from tasktransfer.designs import DESIGNS

name = sys.argv[1] if len(sys.argv) > 1 else "transfer"
print(json.dumps(generate_schema(DESIGNS[name].config), indent=2))
