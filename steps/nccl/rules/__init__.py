"""One file per family of rules; each ends in ``CHECKS``, what ``checks`` runs in this order."""
