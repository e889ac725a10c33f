"""What the console does beyond showing what other services answer."""
