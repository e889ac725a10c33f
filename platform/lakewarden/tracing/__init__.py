"""OpenTelemetry traces: request → access → SQL → store. Nothing imports this package unless traces are configured."""
