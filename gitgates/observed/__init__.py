"""What a gate reads, as seen by strace, and whether it has changed since.

`command` starts the gate under strace, `reads` gets what it read and wrote from strace's output,
`settled` decides what its pass depends on, and `unchanged` checks that before the next run;
`environment` does the same for variables.
"""
