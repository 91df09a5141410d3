"""Which tests a change needs: by names of files, and by what a recording of coverage says each test ran."""
