"""The shell of the product: the first page, what every page has around it, errors, starting up."""
