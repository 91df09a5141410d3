"""What is seen of a workspace: where a path leads, what lies below a folder, in an archive, in its code."""
