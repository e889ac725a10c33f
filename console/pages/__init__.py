"""The console's pages: each module has the views of one part, which call `access` and services as the APIs do."""
