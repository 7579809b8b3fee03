"""Takes over what other tools run: reads their files, and replays commits to compare."""
