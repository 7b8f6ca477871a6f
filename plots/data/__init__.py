"""What is drawn and written from: CSV files, the facts of rungs, and the choice of rows that are compared."""
