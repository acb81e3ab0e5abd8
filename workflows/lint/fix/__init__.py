"""``--fix``: mend what can be mended safely, and touch nothing else.

An edit changes the characters of its own value; every other byte of the file stays: comments, order, quotes. Before it
is kept, the text is read again and must hold exactly what the edit meant, and every comment of before. A round trip
through a YAML library keeps comments too, but it writes the whole file anew (https://yaml.dev/doc/ruamel.yaml/detail/
lists what it normalises): the diff of a one-line mend would be the file.
"""
