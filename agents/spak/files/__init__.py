"""Files of a workspace, opened by what the kernel resolves: one (`beneath`), or all below a folder (`walk`);
the calls that change a disk (`disk`), with the one that makes all of it durable (`syncing`); and temporary
folders (`scratch`).

Tools, validators, ledgers and the runner share them. They decide nothing: the gate judged the path that they
begin at.
"""
