"""A session's journal: its entries, and the state that they are folded into."""
