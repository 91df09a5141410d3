"""Specs that tests of edits and differences change."""

from __future__ import annotations

SPEC = """\
// head

AGENT A LEVEL 5 {
  CONFIG { MODE full_auto, BUDGET { steps: 9 } }

  SYSTEM_MODEL M {
    AXIOM "one" // first
    HEURISTIC "h" WHEN fail
  }

  START -> a

  // about a
  TASK a {
    GOAL "x"
    TOOLS [cc]
    VALIDATOR CpuProfiler { binary: "k.so" }
    step s1: tool.run { cmd: "ls" } // list
    step s2: tool.cc { source: "{{exit_code.s1}}.c" }
    success: exit_code(s1) == 0
    NEXT {
      success -> b, // on
      fail -> a
    }
  }

  TASK b { GOAL "y" } // tail
}
"""

COMPARED = """\
AGENT A LEVEL 5 {
  CONFIG { MODE semi_auto, SANDBOX DOCKER, BUDGET { steps: 90 } }
  INPUTS { n: int = 5, kind: enum("a", "b") = "a" }
  SYSTEM_MODEL M {
    AXIOM "Outputs stay within 1e-4 of the reference."
    AXIOM "No file outside of src is written."
    HEURISTIC "Use smaller tiles." WHEN fail
  }
  START -> first

  TASK first {
    GOAL "Compile it."
    TOOLS [cc, run]
    VALIDATOR CpuProfiler { binary: "k.so" }
    step build: tool.cc { source: "a.c" }
    step look: tool.run { cmd: "ls {{exit_code.build}}" }
    step tidy: tool.run { cmd: "rm x" on_fail: continue }
    evaluation { check lint: tool.run { cmd: "lint" } }
    success: exit_code(build) == 0 and lint < 3
    NEXT { success -> second, fail -> first }
  }

  TASK second {
    GOAL "Say what was found."
    TOOLS [read_file]
    step say: tool.read_file { path: "x" }
    NEXT { success -> third }
  }

  TASK third { GOAL "End." }
}
"""
"""Another, with something of each kind that two versions of a spec may differ in."""
