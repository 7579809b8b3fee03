"""Install hooks into git's folders and agents' settings, and uninstall them."""
