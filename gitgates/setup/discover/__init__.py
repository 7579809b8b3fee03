"""Find a project's checks, try them, and propose them as gates."""
