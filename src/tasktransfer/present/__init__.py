"""What people see of a study, whatever its design: tables, figures and one page.

A design declares them (``declared``). ``tables`` writes a declared table, ``figures`` draws,
``kit`` has what figures are made of, ``page`` writes the report, ``published`` puts a paper's
values beside a study's own, and ``marks`` says what a reader must know of all of it.
"""
