"""The views of the API, a module for each subject."""
