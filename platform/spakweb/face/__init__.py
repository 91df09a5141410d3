"""The floor that people and programs see: pages, the editor, the API, streams."""
