"""Files of a workspace, opened by what the kernel resolves: one (`beneath`), or all below a folder (`walk`).

Tools, validators and the runner share them. They decide nothing: the gate judged the path that they begin at.
"""
