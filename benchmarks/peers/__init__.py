"""Scripts for ``benchmarks.own_data_peers``, each of which fits one method on few dialogues.

Each script is called with a JSON file of a ``benchmarks.own_data_peers.Request``. It writes the
predicted label of each test dialogue, and the CPU seconds that had passed when its imports were
finished. A script runs in the environment of its package; only ``own_reference`` imports
tasktransfer.
"""
