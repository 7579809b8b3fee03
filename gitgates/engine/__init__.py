"""What to run and what it means. Pure: values in, values out."""
