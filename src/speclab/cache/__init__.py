"""A result is made again only when what decides it has changed: the code it reaches, files, and values.

`code` hashes the definitions that a function reaches, `keys` joins hashes to a key, `notes` remembers the key under
which a thing was made and what it left, `store` keeps objects that are slow to compute. Dates of files are
ignored: git sets them freely.
"""
