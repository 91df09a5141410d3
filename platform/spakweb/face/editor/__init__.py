"""The editor of specs: text and graph as one document, compare, merge, presence."""
