"""The API of generic tables, beside the Iceberg REST API, whose clients never see them."""
