"""``python -m tasktransfer.config`` prints the JSON schema of config files."""

import json

from tasktransfer.config import schema

print(json.dumps(schema(), indent=2))
