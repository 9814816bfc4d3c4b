"""Array encodings of file version 2.0.

Every encoding is a module of the same shape: ``decoder(message, page, inner)`` gives the kernel, where `page`
is a `PageContext` with the buffers and the type of the column, and `inner(message)` the kernel of a nested
message; ``describe(message, inner)`` gives its name with nested encodings, for people.
`lance_engine.encodings.array` is the table of them all.
"""
