"""Scripts that fit one method each on few labelled dialogues, for ``benchmarks.own_data_peers``.

Each script is called with a JSON file of a ``benchmarks.own_data_peers.Request``. It writes the
predicted label of each test dialogue, and the processor seconds that had passed when its imports
were finished. A script runs in the environment of its package; only ``own_reference`` imports
tasktransfer.
"""
