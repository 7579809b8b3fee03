"""Run an agent without a terminal until its gates pass, then commit; else roll back."""
