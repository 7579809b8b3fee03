"""Child processes: started, limited, captured, ended, and watched over."""
