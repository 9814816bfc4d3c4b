"""A SQL session: connections, the results of statements, explanations of them."""
