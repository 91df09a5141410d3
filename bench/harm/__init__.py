"""Attacks on the walls of a run, carried out, and what of them got out.

    world        a repository, secrets of its own in each place that may hold one, and what is next to it
    attack       what an attack is, and the spec that it becomes
    *_attacks    the attacks, one table for each channel
    carry        one attack in a fresh copy of the world: `spak run`, `spak apply`, what a person does then
    oracles      what is seen from outside: a decoder, listeners, digests, a scripted victim
    controls     each oracle sees its harm where the wall is taken away

The attacker plays the model: the steps of a spec are theirs, with any tool that the shipped law permits. It
knows where things lie, and no value. What counts is what is found outside afterwards, not what was permitted.
"""
