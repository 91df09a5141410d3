"""The ledger of runs in the database: its store and writer, blobs, projections, files in and out."""
