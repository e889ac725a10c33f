"""Gets Spark running on this machine: Java, jars, the driver's JVM, a session on REST catalogs."""
