"""From rows of the durable log to rows of tables. Pure: no connection, no Django, no state."""
