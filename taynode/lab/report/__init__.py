"""One page about some runs, and the arrays that it draws.

- `page.write_report(runs, out)`: the page.
- `table.compare_table(runs)`: its numbers, as plain data.
- `paths.trace(...)`: what single samples do; the one module here that needs JAX.
"""
