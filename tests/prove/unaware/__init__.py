"""Scripts that never heard of argosy, in the idiom of four libraries, and who kills their ranks."""
