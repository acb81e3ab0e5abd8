"""The wire between author time and pod time: argv, exit codes, causes, environment, keys. Standard library only."""
