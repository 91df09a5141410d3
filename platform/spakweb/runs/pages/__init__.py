"""What people see of runs, and what they do to them from pages."""
