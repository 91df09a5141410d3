"""Messages that come in: signatures, payloads, the log of them."""
