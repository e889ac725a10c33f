"""The try-out job: real data into Iceberg tables through the catalog, by Spark, read again by PyIceberg."""
