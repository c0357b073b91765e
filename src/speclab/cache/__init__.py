"""What was made is made again only when what decides it has changed: code that matters, files, and values.

`code` hashes the definitions that a function reaches, `keys` joins hashes to a key, `notes` remembers the key under
which a thing was made and what it left, `store` keeps objects that take long to compute. Dates of files say nothing:
git sets them freely.
"""
