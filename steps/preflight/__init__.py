"""Before the first step: do all nodes of the gang reach each other, and is one of them slower than the rest?"""
