"""Run an agent without a terminal until its gates pass, then commit; otherwise roll back."""
