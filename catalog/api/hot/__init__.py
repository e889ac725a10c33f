"""What is answered without Django: reads of tables, views, namespaces, lists and config, commits and creations.

One query, which requests that wait at the same time share, finds what a request is about.

It returns the row's version and the project's authorization epoch together: the body and the decision that this
process knows are used only if they are of exactly that version and epoch. Everything else is Django's (see
`lakewarden.hot.routes`), which also fills what is looked up here.
"""
