"""What a gate read, seen by strace, and whether all of that is as it was.

`command` says how the gate is started, `reads` what it has read and written by strace's output,
`settled` what its pass depends on, and `unchanged`, before the next run, whether that holds;
`environment` does the same for its variables.
"""
