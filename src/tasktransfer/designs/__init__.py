"""The designs: each turns a config into a plan, and records into its tables and figures."""
