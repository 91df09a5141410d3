"""A spec that tests of edits change."""

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
