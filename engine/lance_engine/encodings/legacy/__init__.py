"""Page encodings of file version 0.1.

Every encoding is a module with ``decoder(page, context)``, which returns the kernel that decodes a page.
`page` has its position and number of values, `context` the relevant parts of the schema and the file.
`lance_engine.encodings.legacy_page` is the table of all encodings.
"""
