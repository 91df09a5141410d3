"""What is around every request and answer: bodies, origins, policies, static files, errors."""
