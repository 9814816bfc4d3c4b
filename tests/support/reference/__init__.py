"""Plain numpy twins of the decode kernels: the oracle of the tests, never used by the engine itself.

Each module explains and implements one concept of file versions 2.1 and 2.2 in the simplest way that is
right. They are written from the format description alone and share no code with the native kernels, so that
an agreement of the two means something.
"""
