"""What is written: the generated blocks of README and docs, the committed figures, the report."""
