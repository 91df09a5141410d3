"""The Model Context Protocol: servers of others whose tools a run calls, and our own.

`sdk_client` speaks the protocol to a server, and `sdk_server` to the clients of ours, both by the official
SDK, which nothing else imports. `pins` says what of a server was approved and what differs from it;
`definitions` reads a tool's definition and finds what a person must see. Nothing here decides: a call is
judged and recorded as every tool's (spak.tools.served).
"""
