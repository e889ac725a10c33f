"""Drops and changes of properties on the event loop: those that arrive together share one statement (ADR 0057).

They handle ordinary requests. For all others (soft deletion, several locations, a recursive drop, what is protected,
any error) they change nothing and say so; then the service of the same name handles the request.
"""
