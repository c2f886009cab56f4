"""A page about some runs, and the arrays that it draws.

- `page.write_report(runs, out)`: the page.
- `table.compare_table(runs)`: the numbers of the page, as values of JSON.
- `record.record_samples(training, directory)`: writes the arrays. Only this needs JAX.
"""
