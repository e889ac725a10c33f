"""The demo's job: Spark loads real data into Iceberg tables through the catalog, and PyIceberg reads them."""
