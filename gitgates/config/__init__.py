"""From the bytes of the settings files to one checked `Config`."""
