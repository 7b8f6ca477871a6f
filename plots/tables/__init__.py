"""Tables, each a Grid of strings that HTML and Markdown share."""
