"""Page layouts and compressive encodings of file versions 2.1 and 2.2.

Every compressive encoding is a module of the same shape:

``value_decoder(message, inner)``
    The kernel that decodes it as the values of a mini-block chunk; `inner` builds the kernel of a nested
    message.
``block_decoder(message, inner)``
    The kernel that decodes it as one whole buffer: levels, or a dictionary.
``describe(message, inner)``
    Its name with parameters and nested encodings, for people.

A module has only the functions that make sense for its encoding. Page layouts have
``page(message, metadata)`` and ``describe(message)``. The tables of them all are in
`lance_engine.encodings.compressive` and `lance_engine.encodings.registry`.
"""
