"""A Model Context Protocol server with verbs as its tools."""
