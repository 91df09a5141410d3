"""Tags of the app `folders`."""
