"""`lakewarden doctor`: checks everything that is configured; says what is wrong and how to correct it."""
