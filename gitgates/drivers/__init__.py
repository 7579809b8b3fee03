"""Handle one event, of git or of an agent."""
