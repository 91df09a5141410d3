"""The language server: the features of `spak.lang.features` over the Language Server Protocol.

`spak lsp` starts it on standard input and output. Protocol types and dispatch are pygls's; the framing
(wire.py), the text of documents (documents.py) and positions (positions.py) are ours, because pygls loses
the exit code, leaves a request with bad parameters without an answer, and takes U+2028 for the end of a line.
"""

from spak.lsp.server import serve

__all__ = ["serve"]
