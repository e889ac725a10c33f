"""`lakewarden doctor`: checks everything that is configured, and says in plain words what is wrong and what helps."""
