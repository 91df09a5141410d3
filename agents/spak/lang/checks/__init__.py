"""The single checks of a spec, each over the Outline; `spak.lang.check` runs them in their order."""
