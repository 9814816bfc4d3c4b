"""Page encodings of file version 0.1.

Every encoding is a module with ``decoder(page, context)``: the kernel that decodes a page. `page` says where
it begins and how many values it has, `context` what the schema and the file say besides that.
`lance_engine.encodings.legacy_page` is the table of them all.
"""
