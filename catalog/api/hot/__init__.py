"""The hot reads: of tables, views, namespaces, lists and config, without Django, by a query that concurrent ones share.

The query returns the row's version and the project's authorization epoch together: the body and the decision that this
process knows are used only if they are of exactly that version and epoch. Everything else is Django's (see
`lakewarden.hot.routes`), which also fills what is looked up here.
"""
