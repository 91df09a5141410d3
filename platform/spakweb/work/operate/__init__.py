"""Starting, serving, backing up and restoring an installation; the demo team."""
