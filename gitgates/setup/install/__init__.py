"""Install hooks and settings where hosts look for them, and uninstall them."""
