"""The paper's tables, with the published values next to this study's."""
