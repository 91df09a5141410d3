"""The facts of languages whose types are written down: Go and Rust."""
