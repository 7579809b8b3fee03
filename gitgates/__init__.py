"""gitgates: quality gates declared once, enforced wherever code changes hands."""

__version__ = "0.1.0"
