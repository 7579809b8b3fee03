"""Handle an agent's events: remember the session, run the gates, say what they mean."""
